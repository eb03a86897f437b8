"""WebSockets of web pages: foreign sites and foreign names are refused, programs and allowed sites are not."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.acceptance.memodb.conftest import port_of
from tests.support import serving
from tests.support.peer import until
from tests.support.websocket_peer import Socket

ALLOWED = "https://app.example"


@pytest.fixture(scope="module")
def flags() -> list[str]:
    return ["--listen", "memodb+ws://127.0.0.1:0/memo", "--memodb-origins", ALLOWED, "--http-hosts", "jobs.example"]


@pytest.fixture
def web(server: serving.ServerProcess) -> Iterator[Socket]:
    with contextlib.closing(Socket(port_of(server, "memodb+ws"))) as web:
        yield web


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", "", b"101"),
        ("[::1]:12704", "", b"101"),
        ("jobs.example", "", b"101"),
        ("localhost:12704", ALLOWED, b"101"),
        ("localhost:12704", "http://localhost:12704", b"101"),
        ("jobs.example", "https://jobs.example", b"101"),
        ("localhost:12704", "https://evil.example", b"403"),
        ("localhost:12704", "http://localhost:8000", b"403"),
        ("localhost:12704", "null", b"403"),
        ("evil.example:12704", "http://evil.example:12704", b"421"),
        ("evil.example", "", b"421"),
        ("[::1].evil.example", "", b"421"),
        ("127.0.0.1:80.evil.example", "", b"421"),
        ("", "", b"421"),
    ],
)
def test_host_and_origin(web: Socket, host: str, origin: str, status: bytes) -> None:
    line, _ = web.ask(Host=host, **({"Origin": origin} if origin else {}))
    assert line.split()[1] == status
    if status != b"101":
        assert web.stream.read() == b""


def test_two_hosts_are_refused(web: Socket) -> None:
    line, _ = web.ask(Host="localhost\r\nHost: evil.example")
    assert line.split()[1] == b"400"


def test_the_log_names_the_setting(server: serving.ServerProcess, web: Socket) -> None:
    web.ask(Origin="https://curious.example")
    until(
        lambda: "'https://curious.example' is another site; memodb_origins can allow it" in server.stderr, "a log line"
    )


def test_any_name_is_accepted_from_programs_where_other_machines_can_connect() -> None:
    with serving.serve("--store", "memory", "--listen", "memodb+ws://0.0.0.0:0/memo") as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        for origin, status in ({}, b"101"), ({"Origin": "http://lap.lan"}, b"421"):
            with contextlib.closing(Socket(port)) as web:
                assert web.ask(Host="lap.lan", **origin)[0].split()[1] == status
