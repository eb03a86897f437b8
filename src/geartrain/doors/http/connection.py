"""One HTTP connection: requests one after the other, each answered before the next one is handled.

`Connection` has the read loop, the turns, the timeouts and the output of all doors. A handler that needs nothing but
the engine answers at once, and the answer leaves with the others of the tick; one that must wait is a task, and the
connection is blocked until it has ended. Requests that are pipelined stay unread meanwhile, so their answers are in
order and a client cannot fill the memory with them.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from geartrain.doors.connection import Connection
from geartrain.doors.http import problems
from geartrain.doors.http.request import ClientAddress, Request
from geartrain.doors.http.response import LATER, Response, StreamResponse
from geartrain.doors.http.route import Answer
from geartrain.errors import WireError
from geartrain.rights import Identity
from geartrain.wire import foreign_protocol
from geartrain.wire.http import RequestReader

if TYPE_CHECKING:
    from geartrain.doors.http.app import HttpApp
    from geartrain.doors.http.door import HttpDoor

KEEP_ALIVE: Final = 75.0  # seconds until an idle connection is closed
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
# The kinds of problems for errors of the codec and of the base class.
_KINDS: Final = {
    "HEAD_TOO_LARGE": "head-too-large",
    "TOO_LARGE": "too-large",
    "TIMEOUT": "timeout",
    "LIMIT_REACHED": "unavailable",
    "INTERNAL": "internal",
}

_log = logging.getLogger("geartrain.http")


class HttpConnection(Connection):
    """A client, and the request of it that arrives or is answered."""

    def __init__(self, door: "HttpDoor", app: "HttpApp") -> None:
        super().__init__(door)
        self._app = app
        self._reader = RequestReader(door.limits.max_packet)
        self._request: Request | None = None  # whose body arrives, or that is answered
        self._task: asyncio.Task[None] | None = None  # that answers it
        self._ends = False  # after the current response
        self._client: ClientAddress | None = None
        self._scheme = "http"
        self._readable: asyncio.Future[None] | None = None  # done when the client has read enough of a stream
        self._unread = 0  # bytes that were not sent at the last check
        self._idle_since = 0.0  # by the loop's clock; 0: it was not idle at the last check
        self.last_user: Identity | None = None  # of the last request that had an identity

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        name = transport.get_extra_info("peername")
        if isinstance(name, tuple):
            self._client = ClientAddress(str(name[0]), int(name[1]))
        if transport.get_extra_info("ssl_object") is not None:
            self._scheme = "https"

    def data_received(self, data: bytes) -> None:
        """As in every door, but whoever speaks TLS to this port is told nothing."""
        reader = self._reader
        if not reader.begun and not self.input_ended and (foreign := foreign_protocol.hint(data)):
            self.log(logging.WARNING, "peer refused", f"a connection begins with an HTTP request{foreign}")
            super().close()
            return
        super().data_received(data)
        if self._inflight or reader.is_reading_body:
            self.count_inflight(reader.arrived if reader.is_reading_body else 0)

    def eof_received(self) -> bool:
        """A client that closes its side while it waits does not read the answer."""
        return False if self.blocked else super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the handler that waits."""
        if self._request is not None:
            self._request.disconnect()
        self._wake_stream()
        super().connection_lost(error)

    def pause_writing(self) -> None:
        """Streams stop. Reading goes on, to notice that the client is gone."""
        self._paused = True

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wake_stream()

    # Requests

    def feed(self, data: bytes) -> None:
        self._reader.feed(data)

    def handle_packets(self) -> None:
        """Answer the requests that have arrived."""
        reader = self._reader
        while not (self.blocked or self.input_ended):
            request = self._request
            if request is None:
                head = reader.next_head()
                if head is None:
                    return
                request = self._request = Request(head, self, self._client, self._scheme)
                if not self._admit(request):
                    continue
            body = reader.next_body()
            if body is None:
                if request.head.expects_continue:
                    request.head.expects_continue = False
                    self.write(_CONTINUE)
                return
            self._answer(request, body)
            if reader.has_more and self.turn_over():
                return

    def _admit(self, request: Request) -> bool:
        """Check the request before its body has arrived."""
        try:
            self._app.admit(request)
        except Exception as error:
            response = self._app.problem(request, error)
        else:
            return True
        self._request = None
        try:
            body_is_here = self._reader.next_body() is not None
        except WireError:
            body_is_here = False
        if not body_is_here:  # and it may never come: the client may wait for our consent to send it
            self._ends = True
        self.respond(request, response)
        return False

    def _answer(self, request: Request, body: bytes) -> None:
        self._request = None
        try:
            answer = self._app.answer(request, body)
        except Exception as error:
            answer = self._app.problem(request, error)
        if isinstance(answer, Response) and answer is not LATER and not isinstance(answer, StreamResponse):
            self.respond(request, answer)
            return
        self.blocked = True
        self._request = request
        if answer is LATER:
            return
        self._task = self.tick_loop.loop.create_task(self._answer_later(request, answer))

    def respond_later(self, request: Request, response: Response) -> None:
        """Answer a request that waits, within a verb of the engine. Those behind it are handled in a later tick."""
        self._request = None
        self.blocked = False
        self.respond(request, response)
        if (self._reader.has_more or self.has_unhandled) and not (self.suspended or self.input_ended):
            self.suspend()

    async def _answer_later(self, request: Request, answer: Answer) -> None:
        response: Response | None
        try:
            response = answer if isinstance(answer, Response) else await answer
        except Exception as error:
            response = self._app.problem(request, error)
        if isinstance(response, StreamResponse):
            await self._stream(request, response)
            response = None
        self._task = self._request = None
        self.blocked = False
        if response is not None:
            self.respond(request, response)
        elif not self._keeps_alive(request):
            self.close()
        self.unblock()

    # Responses

    def respond(self, request: Request, response: Response) -> None:
        """Send a response at the end of the tick, or when it is durable."""
        if self.closing:
            return
        head = request.head
        keep_alive = self._keeps_alive(request) and "connection" not in response.headers
        without_body = head.method == "HEAD"
        date = self._app.date()
        data = response.encode(date, head.is_old, keep_alive, without_body)
        if response.is_durable and self.tick_loop.durability.last_ticket:
            self.acknowledge(data, self._app.not_durable(head.is_old, keep_alive, without_body))
        else:
            self.write(data)
        self._idle_since = 0.0
        if keep_alive:
            return
        if self._reader.is_reading_body or self._reader.has_more or self.has_unhandled:
            self.close_refused()
        else:
            self.close()

    def _keeps_alive(self, request: Request) -> bool:
        return request.head.keep_alive and not self._ends

    async def _stream(self, request: Request, response: StreamResponse) -> None:
        is_old = request.head.is_old
        self._ends = self._ends or is_old  # the end of the connection is the end of the response
        self.write(response.encode(self._app.date(), is_old, self._keeps_alive(request), chunks=True))
        try:
            await response.send(request)
        except Exception:
            _log.exception("request failed", extra={"fields": {"path": request.path}})
            self.transport.abort()  # the client must not take it for complete
            return
        if not is_old:
            self.write(_LAST_CHUNK)
        self._idle_since = 0.0

    async def send_part(self, request: Request, data: bytes) -> None:
        """Send a part of a stream, and wait until the client has read most of what it was sent."""
        if self.closing or request.disconnected:
            return
        self.write(data if request.head.is_old else b"%x\r\n%b\r\n" % (len(data), data))
        self.flush()
        while self._paused and not (self.closing or request.disconnected):
            self._readable = self.tick_loop.loop.create_future()
            await self._readable

    def _wake_stream(self) -> None:
        if self._readable is not None and not self._readable.done():
            self._readable.set_result(None)

    # Errors and ends

    def send_error(self, error: WireError) -> None:
        """Answer with a problem in the middle of a request. A stream that has begun is cut off."""
        if self.blocked:
            self.transport.abort()
            return
        is_old = self._request is not None and self._request.head.is_old
        self.write(self._problem(_KINDS.get(error.code, "bad-request"), error.text, is_old))

    def surplus_error(self, why: str) -> bytes:
        """503, whatever the client is going to ask for."""
        return self._problem("unavailable", why)

    def _problem(self, kind: str, detail: str, is_old: bool = False) -> bytes:
        """A whole response, after which the connection is closed."""
        return problems.answer(kind, detail).encode(self._app.date(), is_old, keep_alive=False)

    def belongs_to(self, identities: frozenset[Identity]) -> bool:
        """Whether one of these is the identity of the connection, or the one that its last request with a token had."""
        return super().belongs_to(identities) or self.last_user in identities

    def close(self) -> None:
        """Close after the current response. Long responses have been ended by the door."""
        if self.blocked:
            self._ends = True
        else:
            super().close()

    def incomplete(self) -> tuple[int, int]:
        """A client that has sent nothing counts like one that has begun a request: browsers connect in advance."""
        reader = self._reader
        if self.blocked or self.suspended:
            return (reader.begun, 0)
        return (reader.begun, reader.arrived if reader.begun else 1)

    def timed_out(self) -> None:
        """Refuse a request that does not continue."""
        if not self._reader.begun:
            super().close()
            return
        seconds = self.door.limits.stall_timeout
        self.refuse(WireError("TIMEOUT", f"the request did not continue for {seconds:g} seconds"))

    def check_progress(self, checks_per_timeout: int) -> None:
        """Drop a client that reads nothing of its response, and close idle connections."""
        waiting = self.transport.get_write_buffer_size() if self._paused else 0
        if waiting and waiting == self._unread:
            self.drop("client does not read")
            return
        self._unread = waiting
        if self._is_idle():
            now = self.tick_loop.loop.time()
            self._idle_since = self._idle_since or now
            if now - self._idle_since >= KEEP_ALIVE:
                self.close()
                return
        super().check_progress(checks_per_timeout)

    def _is_idle(self) -> bool:
        reader = self._reader
        return reader.begun > 0 and not (self.blocked or self.suspended or self.closing or reader.arrived or self._held)
