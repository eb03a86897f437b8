"""Requests are answered one after the other, however they arrive, and nothing stays of a connection that is lost."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from geartrain.doors import door
from geartrain.doors.http.connection import KEEP_ALIVE, HttpConnection
from geartrain.doors.http.door import HttpDoor, Options
from geartrain.doors.http.request import ApiRequest, Request
from geartrain.doors.http.response import LATER, Response, StreamResponse
from geartrain.doors.http.route import ANYBODY, Answer, RawBytes, Route
from geartrain.doors.http.router import Router
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from tests.support.transport import PausingTransport

NOW = 1_700_000_000.0
GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"


class Stream(StreamResponse):
    """Parts until the client is gone, or three."""

    __slots__ = ("sent",)

    async def send(self, request: ApiRequest) -> None:  # type: ignore[override]
        assert request.connection is not None
        self.sent = 0
        for _ in range(3):
            await request.connection.send_part(request, b"x" * 100)
            self.sent += 1


class Server:
    """A door with one connection. Handlers of /later wait until they are allowed to answer."""

    def __init__(self, limits: door.Limits | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.tick_loop = TickLoop(self.loop, Engine(handle_prefix=b"H:t"), lambda: NOW)
        self.door = HttpDoor(self.tick_loop, limits or door.Limits(max_packet=1000, turn=60.0), Options(), None)  # type: ignore[arg-type]
        self.door._build()
        assert self.door.app is not None
        routes = [
            Route("GET", "/now", self.now, ANYBODY, ""),
            Route("POST", "/now", self.now, ANYBODY, "", body=RawBytes),
            Route("POST", "/later", self.later, ANYBODY, "", body=RawBytes),
            Route("GET", "/later", self.later, ANYBODY, ""),
            Route("GET", "/stream", self.stream, ANYBODY, ""),
            Route("GET", "/called", self.called, ANYBODY, ""),
            Route("GET", "/broken", self.broken, ANYBODY, ""),
            Route("GET", "/large", lambda request: Response(b"x" * HIGH_WATER), ANYBODY, ""),
        ]
        self.door.app._router = Router(routes)
        self.allowed = asyncio.Event()
        self.requests = self.disconnects = 0
        self.streams: list[Stream] = []
        self.waiting: list[Request] = []
        self.connection = HttpConnection(self.door, self.door.app)
        self.transport = PausingTransport(self.connection)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def now(self, request: ApiRequest) -> Answer:
        self.requests += 1
        return Response(b"now%b;" % (request.body or b""))

    def later(self, request: ApiRequest) -> Answer:
        self.requests += 1
        return self._later(request)

    async def _later(self, request: ApiRequest) -> Response:
        await self.allowed.wait()
        self.disconnects += request.http.disconnected
        return Response(b"later%b;" % (request.body or b""))

    def stream(self, request: ApiRequest) -> Answer:
        self.streams.append(Stream())
        return self.streams[-1]

    def called(self, request: ApiRequest) -> Answer:
        self.waiting.append(request.http)
        return LATER

    def broken(self, request: ApiRequest) -> Answer:
        raise ZeroDivisionError

    def send(self, *data: bytes) -> None:
        for part in data:
            self.connection.data_received(part)
            self.run()

    def run(self) -> None:
        """Let the loop call everything that is due."""
        for _ in range(10):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    @property
    def bodies(self) -> list[bytes]:
        """Of all answers so far."""
        found = []
        data = self.transport.written
        while data:
            head, _, data = data.partition(b"\r\n\r\n")
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            found.append(data[:length])
            data = data[length:]
        return found

    def close(self) -> None:
        self.allowed.set()
        if self.connection in self.door.connections:
            self.connection.connection_lost(None)
        self.run()
        self.loop.close()


@contextlib.contextmanager
def serving(limits: door.Limits | None = None) -> Iterator[Server]:
    server = Server(limits)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def test_a_handler_that_needs_not_wait_answers_in_the_same_tick(server: Server) -> None:
    server.connection.data_received(GET % b"now" + POST % (b"now", 2, b"ab"))
    assert server.requests == 2
    assert server.transport.written == b""
    server.run()
    assert server.bodies == [b"now;", b"nowab;"]
    assert not asyncio.all_tasks(server.loop)


def test_answers_of_a_tick_leave_with_one_write(server: Server) -> None:
    writes = []
    server.transport.write = writes.append  # type: ignore[method-assign]
    server.send(GET % b"now" * 10)
    assert len(writes) == 1
    assert writes[0].count(b"now;") == 10


def test_one_request_is_handled_at_a_time(server: Server) -> None:
    server.send(GET % b"later" * 3 + GET % b"now")
    assert (server.requests, server.bodies) == (1, [])
    server.allowed.set()
    server.run()
    assert server.bodies == [b"later;"] * 3 + [b"now;"]


def test_what_arrives_meanwhile_waits(server: Server) -> None:
    server.send(POST % (b"later", 3, b"abc"), GET % b"now", (POST % (b"now", 3, b"def"))[:-1])
    server.allowed.set()
    server.run()
    server.send(b"f")
    assert server.bodies == [b"laterabc;", b"now;", b"nowdef;"]


def test_nothing_more_is_read_while_much_waits(server: Server) -> None:
    server.send(GET % b"later")
    server.send(*[GET % b"now" * 1000] * 10)
    assert not server.transport.reading
    server.allowed.set()
    for _ in range(100):
        server.run()
    assert len(server.bodies) == 10_001
    assert server.transport.reading


def test_a_client_that_does_not_read_is_not_read(server: Server) -> None:
    server.transport.full = True
    server.send(GET % b"large" * 50)
    answered = server.transport.written.count(b"HTTP/1.1 200")
    assert answered < 5
    assert not server.transport.reading
    server.transport.drain()
    for _ in range(100):
        server.run()
    assert server.transport.written.count(b"HTTP/1.1 200") == 50
    assert server.transport.reading


def test_a_stream_stops_while_its_client_does_not_read(server: Server) -> None:
    server.transport.full = True
    server.send(GET % b"stream")
    assert server.streams[0].sent == 0
    server.transport.drain()
    server.run()
    assert server.streams[0].sent == 3
    assert server.transport.written.endswith(b"0\r\n\r\n")
    assert not server.transport.closed


def test_an_answer_from_within_the_engine_lets_others_be_handled_later(server: Server) -> None:
    server.send(GET % b"called" + GET % b"now")
    [request] = server.waiting
    server.connection.respond_later(request, Response(b"called;"))
    assert server.requests == 0
    server.run()
    assert server.bodies == [b"called;", b"now;"]
    assert not asyncio.all_tasks(server.loop)
    server.send(GET % b"called")
    server.connection.connection_lost(None)
    server.connection.respond_later(server.waiting[1], Response(b"nobody hears it"))
    server.run()
    assert len(server.bodies) == 2


def test_a_lost_connection_ends_its_stream_and_its_handler(server: Server) -> None:
    server.transport.full = True
    server.send(GET % b"stream")
    server.connection.connection_lost(None)
    server.run()
    assert not asyncio.all_tasks(server.loop)


def test_a_lost_connection_forgets_what_was_not_begun(server: Server) -> None:
    server.send(GET % b"later" * 3)
    server.connection.connection_lost(ConnectionResetError())
    server.allowed.set()
    server.run()
    assert (server.requests, server.disconnects, server.transport.written) == (1, 1, b"")
    assert server.tick_loop.inflight_bytes == 0


def test_a_bug_in_a_handler_is_a_problem(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.send(GET % b"broken")
    assert server.transport.written.startswith(b"HTTP/1.1 500 ")
    assert b"connection: close" in server.transport.written
    assert "ZeroDivisionError" in caplog.text
    assert server.transport.closed


def test_the_last_answer_is_followed_by_the_end(server: Server) -> None:
    server.send((GET % b"now").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + GET % b"now")
    assert server.bodies == [b"now;"]
    assert server.transport.closed


def test_a_door_that_closes_waits_for_the_answer(server: Server) -> None:
    server.send(GET % b"later" + GET % b"now")
    server.connection.close()
    assert not server.transport.closed
    server.allowed.set()
    server.run()
    assert server.bodies == [b"later;"]
    assert server.transport.closed


def test_a_client_that_ends_its_side_gets_what_was_answered(server: Server) -> None:
    server.connection.data_received(GET % b"now")
    assert server.connection.eof_received()
    server.run()
    assert server.bodies == [b"now;"]


def test_a_client_that_ends_its_side_while_it_waits_is_gone(server: Server) -> None:
    server.send(GET % b"later")
    assert not server.connection.eof_received()


def test_bodies_that_arrive_are_counted(server: Server) -> None:
    server.send((POST % (b"now", 900, b"x" * 900))[:-1])
    assert server.tick_loop.inflight_bytes >= 899
    server.send(b"x")
    assert server.tick_loop.inflight_bytes == 0
    assert server.bodies == [b"now" + b"x" * 900 + b";"]


def test_a_body_that_is_one_too_many_is_refused() -> None:
    limits = door.Limits(max_packet=1_000_000, max_inflight_bytes=100_000, turn=60.0)
    with serving(limits) as server:
        server.send((POST % (b"now", 300_000, b"x" * 300_000))[:-1])
        assert server.transport.written.startswith(b"HTTP/1.1 503 ")
        assert server.tick_loop.inflight_bytes == 0


def test_an_idle_connection_is_closed_in_the_end(server: Server) -> None:
    server.send(GET % b"now")
    server.connection.check_progress(2)
    assert not server.transport.closed
    server.connection._idle_since -= KEEP_ALIVE
    server.send(GET % b"now")
    server.connection.check_progress(2)
    assert not server.transport.closed
    server.connection._idle_since -= KEEP_ALIVE
    server.connection.check_progress(2)
    assert server.transport.closed


def test_a_connection_whose_request_waits_is_not_idle(server: Server) -> None:
    server.send(GET % b"later")
    for _ in range(5):
        server.connection.check_progress(2)
        server.connection._idle_since -= KEEP_ALIVE
    assert not server.transport.closed


def test_tls_is_told_nothing(server: Server) -> None:
    server.send(b"\x16\x03\x01\x02\x00")
    assert (server.transport.written, server.transport.closed) == (b"", True)
