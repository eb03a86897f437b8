"""The scalability protocols' wire, as a REP server speaks it: NNG's requests and replies, without NNG.

A pipe (one connection) carries messages. Over TCP and over socket files both sides first send a greeting that
names their protocol; then each message has its length before it, over socket files with a byte 1 before that.
Over WebSocket (`websocket.py`) neither is needed.

A message to a REP server is a backtrace and a body. The backtrace is a row of big-endian words, of which only
the last has its highest bit set: devices on the way put theirs in front, and the last is the request's own id. The
reply carries the same backtrace, which is how it finds back to who asked.

>>> pipe = StreamPipe(TCP)
>>> pipe.feed(greeting(REQ) + bytes.fromhex("0000000000000009 87fc1697") + b"hello")
>>> pipe.next(), pipe.data[pipe.start:pipe.end]
(True, b'\\x87\\xfc\\x16\\x97hello')
>>> pipe.next()
False
>>> pipe.framed(b"\\x87\\xfc\\x16\\x97", b"hello")[0].hex()
'000000000000000987fc169768656c6c6f'
"""

import struct
from typing import Final, Protocol

from geartrain.errors import WireError
from geartrain.wire.stream import Stream

REQ: Final = 0x30
REP: Final = 0x31

# What stands before the length of each message.
TCP: Final = b""
IPC: Final = b"\x01"

MAX_MESSAGE: Final = 64 * 1024 * 1024
MAX_HOPS: Final = 8  # words in a backtrace: NNG's default
# A payload up to this size is copied behind its header; a larger one is handed on as it is.
COPY_UP_TO: Final = 16 * 1024

_GREETING: Final = struct.Struct(">4sHH")
_GREETING_SIZE: Final = 8
_MAGIC: Final = b"\0SP\0"
_LENGTH: Final = struct.Struct(">Q")
_WORD: Final = 4
_LAST_WORD: Final = 0x80


def greeting(protocol: int) -> bytes:
    """What both sides of a TCP or IPC pipe say first."""
    return _GREETING.pack(_MAGIC, protocol, 0)


class Pipe(Protocol):
    """The bytes of one pipe, whatever it runs over. `next` raises a WireError for what the rules forbid."""

    data: bytes  # the current message lies in it between start and end
    start: int
    end: int
    greeting: bytes  # what has to be said before anything is heard
    answers: list[bytes]  # what has to be said because of what was fed; who says it empties this

    @property
    def parts_begun(self) -> int:
        """Tells one incomplete message from the next."""

    @property
    def greeted(self) -> bool:
        """Whether the peer has said who it is."""

    @property
    def waiting(self) -> int:
        """How many bytes of an incomplete message have arrived."""

    def feed(self, data: bytes) -> None:
        """Take what was read; `next` has returned False before."""

    def next(self) -> bool:
        """Whether there is another message."""

    def framed(self, head: bytes, payload: bytes) -> list[bytes]:
        """A message of these two, ready to be written."""


class StreamPipe(Stream):
    """A pipe over TCP or a socket file: a greeting, then messages with their lengths."""

    __slots__ = ("_header_size", "_prefix", "answers", "greeted", "greeting", "max_message")

    def __init__(self, prefix: bytes, max_message: int = MAX_MESSAGE) -> None:
        super().__init__()
        self.max_message = max_message
        self.greeting = greeting(REP)
        self.greeted = False
        self.answers: list[bytes] = []  # there is never anything to say but the greeting
        self._prefix = prefix
        self._header_size = len(prefix) + _LENGTH.size

    def next(self) -> bool:
        """Whether there is another message; it lies in `data` between `start` and `end`."""
        data = self.data
        position = self._position
        size = len(data)
        if not self.greeted:
            if size < _GREETING_SIZE:
                return self._begun(data)
            self._greet(data[:_GREETING_SIZE])
            position = self._position = _GREETING_SIZE
        if position == size:
            self.data = b""
            self._position = 0
            return False
        prefix = self._prefix
        if prefix and data[position] != prefix[0]:
            raise WireError("PROTOCOL", f"A message over a socket file begins with 1, not {data[position]}")
        start = position + self._header_size
        if start > size:
            return self._later(position, self._header_size)
        (length,) = _LENGTH.unpack_from(data, start - _LENGTH.size)
        if length > self.max_message:
            limit = f"a message may have {self.max_message} bytes here"
            raise WireError("MESSAGE_TOO_LONG", f"A message of {length} bytes was announced, {limit}")
        end = start + length
        if end > size:
            return self._later(position, self._header_size + length)
        self.start = start
        self.end = self._position = end
        return True

    def framed(self, head: bytes, payload: bytes) -> list[bytes]:
        """A message of these two; a large payload is not copied."""
        before = self._prefix + _LENGTH.pack(len(head) + len(payload)) + head
        return [before + payload] if len(payload) <= COPY_UP_TO else [before, payload]

    def _later(self, position: int, need: int) -> bool:
        self._wait(self.data, position, need)
        return False

    def _greet(self, said: bytes) -> None:
        magic, protocol, reserved = _GREETING.unpack(said)
        if magic != _MAGIC or reserved:
            raise WireError("PROTOCOL", f"A pipe begins with an SP greeting, not {said!r}")
        if protocol != REQ:
            raise WireError("PROTOCOL", f"The peer speaks SP protocol {protocol:#x}, this is a place for REQ (0x30)")
        self.greeted = True

    def _begun(self, said: bytes) -> bool:
        """Refuse what cannot become a greeting as soon as that is known, and wait for the rest of what can."""
        if said[: len(_MAGIC)] != _MAGIC[: len(said)]:
            raise WireError("PROTOCOL", f"A pipe begins with an SP greeting, not {said!r}")
        if said:
            self._wait(said, 0, len(said) + 1 if len(said) < len(_MAGIC) else _GREETING_SIZE)
        return False


def body(data: bytes, start: int, end: int) -> int:
    """Where the body of a message begins: behind its backtrace.

    As in NNG, a backtrace without an end is a fault of the pipe, and one that is too long only of the message.
    """
    position = start
    for _ in range(MAX_HOPS):
        if end - position < _WORD:
            raise WireError("PROTOCOL", "A message ends inside its backtrace")
        position += _WORD
        if data[position - _WORD] & _LAST_WORD:
            return position
    raise WireError("TOO_MANY_HOPS", f"A request came over more than {MAX_HOPS} hops", fatal=False)
