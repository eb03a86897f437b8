"""The codec of server-sent events, which the HTTP client reads."""

from collections import deque

from campaigns.codecs.codec import Codec, Packet, Stream
from campaigns.mutation import LIMIT, unwrapped
from geartrain.wire.event_stream import EventStream, ServerSentEvent

_EVENTS = (
    b"event: job\ndata: {}\n\n",
    b"data: one\ndata: two\r\n\r\n",
    b": a comment\n\n",
    b"id: 7\nretry: 1000\ndata\n\n",
    b"\xef\xbb\xbfdata: marked\n\n",
    b"data: \xff\xfe\r\r",
)


class _Events:
    """EventStream returns the events of a chunk at once."""

    def __init__(self) -> None:
        self._stream = EventStream(LIMIT)
        self._chunk: bytes | None = None
        self._events: deque[ServerSentEvent] = deque()

    def feed(self, chunk: bytes) -> None:
        self._chunk = chunk

    def packet(self) -> Packet | None:
        chunk, self._chunk = self._chunk, None
        if chunk is not None:
            self._events.extend(self._stream.feed(chunk))
        return ("event", self._events.popleft()) if self._events else None


def _open() -> Stream:
    events = _Events()
    return Stream(events.feed, events.packet)


TOKENS = (b"\r", b"\n", b"\r\n", b":", b"data", b"event", b" ")
CODECS = (Codec("event-stream", _EVENTS, _open, unwrapped, TOKENS, keeps_packets_before_error=False),)
