"""One HTTP peer: uvicorn's protocol inside a connection of ours.

uvicorn parses, keeps connections alive and holds back what a peer does not read. What it does not do is done here:
a bound on the size of a request's head, and an end for peers that begin a request and do not go on, never say a
word, or never read.
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
KEEP_ALIVE: Final = 75  # seconds in which the next request may come

_IDLE, _HEAD, _BODY = range(3)


def config(app: Any) -> Config:
    """uvicorn without what surrounds a server of its own."""
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


class Exchange(HttpToolsProtocol):
    """uvicorn's protocol, which also knows where in a request it is."""

    def __init__(self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, state, {}, loop)
        self.access_log = False
        self.begun = 0  # requests
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
            # It is answered as if it had not asked to go on in another protocol; after it nothing can be parsed.
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self.phase = _IDLE
        self.arrived = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered like everything else that is wrong."""
        self.refuse("bad-request", "this is not an HTTP request that makes sense")

    def refuse(self, kind: str, detail: str) -> None:
        """Answer with a problem in the middle of a request, and close. What was begun to be said is cut off."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = problems.body(kind, detail)
        head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        status = STATUS_LINE[problems.STATUSES[kind]]
        self.transport.write(status + head % (problems.MEDIA_TYPE.encode(), len(body)) + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Nobody who serves has to know."""


class HttpConnection(Connection):
    """What the door sees of a peer."""

    def __init__(self, door: "HttpDoor", exchange: Exchange) -> None:
        super().__init__(door)
        self.exchange = exchange
        self._unread = 0  # bytes that waited for the peer at the last look

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.exchange.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """uvicorn parses what was read and answers its own errors, so the read loop of other doors is not for here."""
        if self.closing:
            return
        exchange = self.exchange
        exchange.data_received(data)
        if exchange.phase == _HEAD and exchange.arrived > HEAD_LIMIT:
            self.closing = True
            exchange.refuse("head-too-large", f"a request's line and headers may have at most {HEAD_LIMIT} bytes")

    def eof_received(self) -> bool:
        """The transport closes: who asks and hangs up does not want the answer."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.exchange.connection_lost(error)
        super().connection_lost(error)

    def pause_writing(self) -> None:
        """uvicorn stops whoever writes; the request that is being answered has been read already."""
        self._paused = True
        self.exchange.pause_writing()

    def resume_writing(self) -> None:
        self._paused = False
        self.exchange.resume_writing()

    def close(self) -> None:
        """After the answer that is under way; the door has ended those that would go on for long."""
        self.exchange.shutdown()

    def incomplete(self) -> tuple[int, int]:
        """A peer that has not said anything yet counts as one that has begun: browsers connect in advance."""
        exchange = self.exchange
        if exchange.phase == _IDLE or exchange.flow.read_paused:
            return (exchange.begun, 0 if exchange.begun else 1)
        return (exchange.begun, exchange.arrived)

    def timed_out(self) -> None:
        """A request was begun and does not go on."""
        self.closing = True
        if self.exchange.phase == _IDLE:
            self.transport.close()
            return
        self.exchange.refuse("timeout", f"the request did not go on for {self.door.limits.stall_timeout:g} seconds")

    def check_progress(self, checks_per_timeout: int) -> None:
        """Besides those that do not go on, end those that read nothing of what waits for them."""
        waiting = self.transport.get_write_buffer_size() if self._paused else 0
        if waiting and waiting == self._unread:
            self.drop("it does not read what it is sent")
            return
        self._unread = waiting
        super().check_progress(checks_per_timeout)
