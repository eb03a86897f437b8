"""uvicorn's HTTP protocol, with bounds on what one client can make it keep.

uvicorn parses everything that has arrived, and queues the requests behind the one that is being answered (pipelining).
A client that sends requests and reads nothing would fill the memory with them. So one request is parsed at a time:
what arrived behind it stays as bytes until it is answered, and when that is much, nothing more is read.

The parser cannot stop in the middle of its input, so it gets pieces that end where a request can end:

- a head ends at its blank line,
- the length of most bodies is in their head,
- chunked bodies come in small pieces, so that only few requests can stand behind the end of one. uvicorn queues those.

This relies on internals of uvicorn: pyproject.toml excludes its next minor version, and a test names what is missing.
"""

import asyncio
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from geartrain.doors.http import problems

HEAD_LIMIT: Final = 64 * 1024  # bytes of a request line and its headers
KEEP_ALIVE: Final = 75  # seconds until an idle connection is closed
# With as many bytes behind the current request nothing more is read. With fewer it is, to notice a disconnect.
UNPARSED_MOST: Final = 64 * 1024
PIECE: Final = 1024  # bytes of a chunked body, or of a head whose end has not arrived

_BLANK_LINE: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"
_UNKNOWN: Final = -1
_OLD_VERSION: Final = "1.0"
_STATUS_LINE: Final = b"HTTP/1.1 "
_OLD_STATUS_LINE: Final = b"HTTP/1.0 "

IDLE, HEAD, BODY = range(3)  # what arrives: nothing yet, or a part of a request


def config(app: Any) -> Config:
    """uvicorn's configuration, without the parts that belong to a server of its own."""
    made = Config(
        app,
        http=HttpToolsProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
    )
    made.load()
    return made


class UvicornProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which parses one request at a time and tracks how much of it has arrived."""

    def __init__(self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, state, {}, loop)
        self.access_log = False
        self.begun = 0  # number of requests
        self.arrived = 0  # bytes of the request that is arriving
        self.phase = IDLE
        self._body_left = 0  # bytes of the body that have not arrived; unknown if it is chunked
        self._unparsed = b""  # what was read, of which some may be parsed
        self._position = 0  # where the unparsed part begins
        self._reading_paused = False  # because much is unparsed; uvicorn pauses for its own reasons
        self._running: Any = None  # the cycle whose handler runs; uvicorn's `cycle` is the one that was parsed last

    # Reading

    def data_received(self, data: bytes) -> None:
        """Parse up to the end of the current request; keep the rest."""
        if self._position < len(self._unparsed):
            data = self._unparsed[self._position :] + data
        self._unparsed = data
        self._position = 0
        self._parse()

    def _parse(self) -> None:
        data = self._unparsed
        while self._position < len(data) and not self._waits() and not self.transport.is_closing():
            start = self._position
            end = self._position = self._end_of_piece(data, start)
            self.arrived += end - start
            super().data_received(data[start:end])
            if self.phase == HEAD and self.arrived > HEAD_LIMIT:
                self.refuse("head-too-large", f"the request line and headers are larger than {HEAD_LIMIT} bytes")
        if self._position == len(data) or self.transport.is_closing():
            self._forget_unparsed()
        self._pause_or_resume_reading()

    def _waits(self) -> bool:
        """Whether a request has arrived completely and is not answered yet."""
        return self.phase == IDLE and self.cycle is not None and not self.cycle.response_complete

    def _end_of_piece(self, data: bytes, start: int) -> int:
        """Where the piece ends that the parser gets next."""
        if self.phase == BODY:
            length = PIECE if self._body_left == _UNKNOWN else self._body_left
            end = min(start + length, len(data))
            if self._body_left != _UNKNOWN:
                self._body_left -= end - start
            return end
        if self.phase == IDLE and data[start] in _LINE_END:
            # Empty lines before a request are allowed. Together they are one piece: each piece costs a call.
            return len(data) - len(data[start:].lstrip(_LINE_END))
        blank = data.find(_BLANK_LINE, start, start + PIECE)
        return min(start + PIECE, len(data)) if blank < 0 else blank + len(_BLANK_LINE)

    def _pause_or_resume_reading(self) -> None:
        much = len(self._unparsed) - self._position >= UNPARSED_MOST
        if much:
            self.transport.pause_reading()  # also if it is paused: a handler that reads its body may have resumed it
        elif self._reading_paused and not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
        self._reading_paused = much

    def _forget_unparsed(self) -> None:
        self._unparsed = b""
        self._position = 0

    # What the parser calls

    def on_message_begin(self) -> None:
        self.begun += 1
        self.phase = HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.phase = BODY
        super().on_headers_complete()
        self._body_left = _length_of_body(self.headers)
        if not self.pipeline:
            self._running = self.cycle
        if self.cycle is not None and self.cycle.scope["http_version"] == _OLD_VERSION:
            transport: Any = OldVersionTransport(self.transport)
            self.cycle.transport = transport
        if self.parser.should_upgrade() and self.cycle is not None:
            # The request is answered without the upgrade. The parser cannot continue, so the connection closes.
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self.phase = IDLE
        self.arrived = 0
        super().on_message_complete()

    # Answering

    def on_response_complete(self) -> None:
        """Go on with what arrived behind the request."""
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if self._unparsed:
            self._parse()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem, like other errors."""
        self.refuse("bad-request", "not a valid HTTP request")

    def refuse(self, kind: str, detail: str) -> None:
        """Answer with a problem in the middle of a request, and close. A response that has begun is cut off."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        self.transport.write(problem_response(kind, detail))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget requests that were not begun, and tell the handler of the one that was."""
        self._forget_unparsed()
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self._running = None
        # uvicorn leaves its timer when a connection was reset, and the timer keeps the connection's objects in memory.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """uvicorn would log that an upgrade is not supported: that is of no use to operators."""


class OldVersionTransport:
    """The transport of one response to an HTTP/1.0 request, whose status line has that version; uvicorn writes 1.1."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._begun = False

    def write(self, data: bytes) -> None:
        """Write, the first time with the version of the request."""
        if not self._begun:
            self._begun = True
            data = data.replace(_STATUS_LINE, _OLD_STATUS_LINE, 1)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def _length_of_body(headers: list[tuple[bytes, bytes]]) -> int:
    """The length that the headers announce; unknown if they do not. The parser has checked them."""
    length = 0
    for name, value in headers:
        if name == b"transfer-encoding":
            return _UNKNOWN
        if name == b"content-length":
            length = int(value)
    return length


def problem_response(kind: str, detail: str) -> bytes:
    """A whole response with a problem, after which the connection is closed."""
    body = problems.body(kind, detail)
    head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return STATUS_LINE[problems.STATUSES[kind]] + head % (problems.MEDIA_TYPE.encode(), len(body)) + body
