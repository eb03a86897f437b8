"""One request is parsed at a time, however requests arrive, and the rest is forgotten with the connection."""

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.config import Config
from uvicorn.protocols.http import httptools_impl
from uvicorn.server import ServerState

from geartrain.doors.http import uvicorn_protocol
from geartrain.doors.http.uvicorn_protocol import PIECE, UNPARSED_MOST, UvicornProtocol
from tests.support.transport import Transport

GET = b"GET /%d HTTP/1.1\r\n\r\n"
POST = b"POST /%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b"
CHUNKED = b"POST /%d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"


class ReadingTransport(Transport):
    """A transport that remembers whether it is read."""

    reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else None


class Server:
    """Handlers that wait until they are allowed to answer; the answer is the path and the body."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.allowed = asyncio.Event()
        self.requests = 0
        self.disconnects = 0
        state = ServerState()
        self.protocol = UvicornProtocol(uvicorn_protocol.config(self.handle), state, self.loop)
        self.transport = ReadingTransport()
        self.protocol.connection_made(self.transport)  # type: ignore[arg-type]

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests += 1
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnects += 1
                return
            body += message["body"]
            more = message["more_body"]
        await self.allowed.wait()
        answer = scope["path"].encode() + b"=" + body + b";"
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        await send({"type": "http.response.body", "body": answer})

    def run(self) -> None:
        """Let the loop call everything that is due."""
        for _ in range(3):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def answer_all(self) -> bytes:
        """The bodies of all answers."""
        self.allowed.set()
        before = -1
        while before != self.requests:
            before = self.requests
            self.run()
        return b"".join(bodies(self.transport.written))


def bodies(data: bytes) -> Iterator[bytes]:
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        yield data[:length]
        data = data[length:]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    close(server)


def close(server: Server) -> None:
    if server.protocol.parser is not None:
        server.protocol.connection_lost(None)
    server.allowed.set()
    server.run()
    server.loop.close()


USED = {
    "HttpToolsProtocol": (
        "data_received",
        "on_message_begin",
        "on_headers_complete",
        "on_message_complete",
        "on_response_complete",
        "connection_made",
        "connection_lost",
        "send_400_response",
        "shutdown",
        "pause_writing",
        "resume_writing",
        "_unsupported_upgrade_warning",
        "_unset_keepalive_if_required",
    ),
    "protocol": ("parser", "transport", "flow", "headers", "cycle", "pipeline", "access_log"),
    "parser": ("should_upgrade", "feed_data"),
    "flow": ("read_paused",),
    "cycle": ("response_started", "response_complete", "disconnected", "message_event", "keep_alive"),
}


def test_what_we_use_of_uvicorn_is_there(server: Server) -> None:
    server.protocol.data_received(GET % 1 + GET % 2)
    owners = {
        "HttpToolsProtocol": httptools_impl.HttpToolsProtocol,
        "protocol": server.protocol,
        "parser": server.protocol.parser,
        "flow": server.protocol.flow,
        "cycle": server.protocol.cycle,
    }
    missing = [f"{owner}.{name}" for owner, names in USED.items() for name in names if not hasattr(owners[owner], name)]
    assert not missing, f"uvicorn {uvicorn.__version__} lacks {missing}: adapt doors/http/uvicorn_protocol.py"
    parameters = list(inspect.signature(httptools_impl.HttpToolsProtocol).parameters)
    assert parameters[:2] == ["config", "server_state"], f"uvicorn {uvicorn.__version__} has {parameters}"
    assert set(uvicorn_protocol.problems.STATUSES.values()) <= httptools_impl.STATUS_LINE.keys()
    assert {"http", "ws", "lifespan", "interface", "proxy_headers", "timeout_keep_alive"} <= set(
        inspect.signature(Config).parameters
    )


def test_uvicorn_queues_a_request_as_a_pair_that_begins_with_its_cycle(server: Server) -> None:
    server.protocol.data_received(CHUNKED % (1, 1, b"x") + GET % 2)
    [(cycle, _)] = server.protocol.pipeline
    assert cycle is server.protocol.cycle


def test_one_request_is_parsed_at_a_time(server: Server) -> None:
    server.protocol.data_received(b"".join(GET % number for number in range(1000)))
    server.run()
    assert (server.protocol.begun, server.requests, len(server.protocol.pipeline)) == (1, 1, 0)
    assert server.answer_all() == b"".join(b"/%d=;" % number for number in range(1000))
    assert server.protocol.begun == 1000


def test_few_requests_are_queued_behind_a_chunked_body(server: Server) -> None:
    server.protocol.data_received(CHUNKED % (0, 1, b"x") + b"".join(GET % number for number in range(1, 1000)))
    server.run()
    assert server.protocol.begun <= 1 + PIECE // len(GET % 1)
    assert server.answer_all() == b"/0=x;" + b"".join(b"/%d=;" % number for number in range(1, 1000))


def test_nothing_more_is_read_while_much_is_unparsed(server: Server) -> None:
    server.protocol.data_received(GET % 1)
    server.run()
    one = GET % 2
    count = UNPARSED_MOST // len(one)
    server.protocol.data_received(one * count)
    assert server.transport.reading
    server.protocol.data_received(one)
    assert not server.transport.reading
    server.transport.reading = True  # as when uvicorn resumes reading
    server.protocol.data_received(one)
    assert not server.transport.reading
    assert server.answer_all().count(b";") == count + 3
    assert server.transport.reading


def test_empty_lines_before_a_request(server: Server) -> None:
    server.protocol.data_received(b"\r\n" * 1000 + GET % 1 + b"\r\n" + GET % 2 + b"\r\n")
    assert server.answer_all() == b"/1=;/2=;"


def test_a_lost_connection_forgets_its_requests(server: Server) -> None:
    server.protocol.data_received(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx")
    server.run()
    server.protocol.connection_lost(None)
    server.run()
    assert (server.requests, server.disconnects) == (1, 1)


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
def test_a_lost_connection_leaves_no_timer(server: Server, error: Exception | None) -> None:
    server.protocol.data_received(GET % 1)
    server.answer_all()
    timer = server.protocol.timeout_keep_alive_task
    assert timer is not None
    server.protocol.connection_lost(error)
    assert timer.cancelled()


@pytest.mark.parametrize("first", [GET % 0, CHUNKED % (0, 1, b"x")], ids=["unparsed", "queued"])
def test_a_lost_connection_begins_no_other_request(server: Server, first: bytes) -> None:
    server.protocol.data_received(first + GET % 1 + GET % 2)
    server.run()
    server.protocol.connection_lost(None)
    assert (server.protocol._unparsed, len(server.protocol.pipeline)) == (b"", 0)
    server.answer_all()
    assert server.requests == 1


@given(
    st.lists(st.tuples(st.sampled_from("gpc"), st.binary(min_size=1, max_size=2000)), min_size=1, max_size=6),
    st.lists(st.integers(1, 3000), max_size=8),
)
def test_the_answers_do_not_depend_on_how_requests_arrive(requests: list[tuple[str, bytes]], sizes: list[int]) -> None:
    stream = expected = b""
    for number, (kind, body) in enumerate(requests):
        if kind == "g":
            stream, body = stream + GET % number, b""
        elif kind == "p":
            stream += POST % (number, len(body), body)
        else:
            stream += CHUNKED % (number, len(body), body)
        expected += b"/%d=%b;" % (number, body)
    server = Server()
    try:
        for size in sizes:
            server.protocol.data_received(stream[:size])
            stream = stream[size:]
            server.run()
        server.protocol.data_received(stream)
        assert server.answer_all() == expected
    finally:
        close(server)
