"""One HTTP connection: uvicorn's protocol inside a connection of ours.

uvicorn parses requests, keeps connections alive and stops writing to clients that do not read. What it lacks is here:
a limit on the size of request heads, and timeouts for clients that send nothing, stop in the middle of a request, or
do not read.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from geartrain.doors.connection import Connection
from geartrain.doors.http import problems

if TYPE_CHECKING:
    from geartrain.doors.http.door import HttpDoor

HEAD_LIMIT: Final = 64 * 1024  # bytes of a request line and its headers
KEEP_ALIVE: Final = 75  # seconds until an idle connection is closed

_IDLE, _HEAD, _BODY = range(3)


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
    """uvicorn's protocol, which also tracks how much of a request has arrived."""

    def __init__(self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, state, {}, loop)
        self.access_log = False
        self.begun = 0  # number of requests
        self.arrived = 0  # bytes of the request that is arriving
        self.phase = _IDLE

    def data_received(self, data: bytes) -> None:
        self.arrived += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        self.begun += 1
        self.phase = _HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.phase = _BODY
        super().on_headers_complete()
        if self.parser.should_upgrade() and self.cycle is not None:
            # The request is answered without the upgrade. The parser cannot continue, so the connection closes.
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self.phase = _IDLE
        self.arrived = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem, like other errors."""
        self.refuse("bad-request", "not a valid HTTP request")

    def refuse(self, kind: str, detail: str) -> None:
        """Answer with a problem in the middle of a request, and close. A response that has begun is cut off."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = problems.body(kind, detail)
        head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        status = STATUS_LINE[problems.STATUSES[kind]]
        self.transport.write(status + head % (problems.MEDIA_TYPE.encode(), len(body)) + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """uvicorn would log that an upgrade is not supported: that is of no use to operators."""


class HttpConnection(Connection):
    """The connection as the door sees it."""

    def __init__(self, door: "HttpDoor", protocol: UvicornProtocol) -> None:
        super().__init__(door)
        self.protocol = protocol
        self._unread = 0  # bytes that were not sent at the last check

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """uvicorn parses what was read and answers its own errors, so the read loop of other doors is not for here."""
        if self.closing:
            return
        protocol = self.protocol
        protocol.data_received(data)
        if protocol.phase == _HEAD and protocol.arrived > HEAD_LIMIT:
            self.closing = True
            protocol.refuse("head-too-large", f"the request line and headers are larger than {HEAD_LIMIT} bytes")

    def eof_received(self) -> bool:
        """Close the transport: a client that closes its side does not read the answer."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.protocol.connection_lost(error)
        super().connection_lost(error)

    def pause_writing(self) -> None:
        """uvicorn stops the writing handler. Reading goes on: the request that is answered has been read."""
        self._paused = True
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self._paused = False
        self.protocol.resume_writing()

    def close(self) -> None:
        """Close after the current response. Long responses have been ended by the door."""
        self.protocol.shutdown()

    def incomplete(self) -> tuple[int, int]:
        """A client that has sent nothing counts like one that has begun a request: browsers connect in advance."""
        protocol = self.protocol
        if protocol.phase == _IDLE or protocol.flow.read_paused:
            return (protocol.begun, 0 if protocol.begun else 1)
        return (protocol.begun, protocol.arrived)

    def timed_out(self) -> None:
        """Refuse a request that does not continue."""
        self.closing = True
        if self.protocol.phase == _IDLE:
            self.transport.close()
            return
        self.protocol.refuse("timeout", f"the request did not continue for {self.door.limits.stall_timeout:g} seconds")

    def check_progress(self, checks_per_timeout: int) -> None:
        """Drop a client that reads nothing of its response, besides clients that do not continue a request."""
        waiting = self.transport.get_write_buffer_size() if self._paused else 0
        if waiting and waiting == self._unread:
            self.drop("client does not read")
            return
        self._unread = waiting
        super().check_progress(checks_per_timeout)
