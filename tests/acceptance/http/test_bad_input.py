"""Invalid input is answered with a problem that says what is wrong, and affects no other client."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.http.conftest import HTTP
from tests.support import process, serving
from tests.support.http_peer import Peer

STALL = 1.0


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    """One that is impatient, and takes little."""
    limits = ("--max-packet", "64KiB", "--stall-timeout", f"{STALL}s", "--http-listeners", "3")
    with serving.serve("--store", "memory", "--listen", HTTP, *limits) as running:
        yield running


@pytest.fixture(scope="module")
def peer(server: serving.ServerProcess) -> Peer:
    return Peer(server.url)


@contextlib.contextmanager
def raw(peer: Peer, *data: bytes) -> Iterator[socket.socket]:
    with socket.create_connection((peer.host, peer.port), timeout=20) as connection:
        for part in data:
            connection.sendall(part)
        yield connection


def rest(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65536):
            data += more
    return data


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/none", 404, "not-found"),
        ("GET", "/jobs/", 404, "not-found"),
        ("PATCH", "/jobs", 405, "method-not-allowed"),
        ("DELETE", "/overview", 405, "method-not-allowed"),
        ("HEAD", "/jobs/bulk", 405, ""),
        ("HEAD", "/events", 405, ""),
        ("GET", "/jobs?limit=0", 400, "bad-request"),
        ("GET", "/jobs?limit=x", 400, "bad-request"),
        ("GET", "/jobs?limit=99999999999999999999", 400, "bad-request"),
        ("GET", "/jobs?since=nan", 400, "bad-request"),
        ("GET", "/jobs?since=inf", 400, "bad-request"),
        ("GET", "/jobs?until=-1", 400, "bad-request"),
        ("GET", "/jobs?state=asleep", 400, "bad-request"),
        ("GET", "/jobs?after=x", 400, "bad-request"),
        ("GET", "/jobs?after=99999999999999999999999", 400, "bad-request"),
        ("GET", "/jobs?search=%FF", 400, "bad-request"),
        ("GET", "/jobs?colour=red", 400, "bad-request"),
        ("GET", "/jobs?limit=1&limit=2", 400, "bad-request"),
        ("GET", "/overview?x=1", 400, "bad-request"),
        ("GET", "/functions?sort=size", 400, "bad-request"),
        ("GET", "/functions?after=%C2%B2", 400, "bad-request"),
        ("GET", "/history?seconds=0", 400, "bad-request"),
        ("GET", "/workers?search=%FF", 400, "bad-request"),
        ("GET", "/events?jobs=2", 400, "bad-request"),
        ("POST", "/workers/none/claim?wait=1e9", 400, "bad-request"),
        ("POST", "/workers/none/claim", 404, "not-found"),
        ("POST", "/workers/%FF/claim", 404, "not-found"),
        ("DELETE", "/workers/none", 404, "not-found"),
        ("GET", "/functions/none", 404, "not-found"),
    ],
)
def test_invalid_requests(peer: Peer, method: str, path: str, status: int, kind: str) -> None:
    answer = peer.call(method, path)
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/problem+json"
    if kind:
        assert set(answer.json) == {"type", "title", "status", "detail", "kind"}
        assert (answer.json["kind"], answer.json["status"]) == (kind, status)


def test_allow_lists_the_methods_of_a_path(peer: Peer) -> None:
    assert peer.call("PATCH", "/jobs").headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b"[" * 100_000, b'{"function": "\\ud800"}', b"nan", b'"' + b"x" * 60_000]
)
def test_a_body_that_is_not_json(peer: Peer, body: bytes) -> None:
    answer = peer.call("POST", "/jobs", data=body[:64_000], content_type="application/json")
    assert (answer.status, answer.json["kind"]) == (400, "bad-request")
    assert len(answer.json["detail"]) <= 300


def test_a_body_that_is_too_large(peer: Peer) -> None:
    answer = peer.call("POST", "/jobs", data=b"x" * (64 * 1024 + 1), content_type="application/json")
    assert (answer.status, answer.json["kind"]) == (413, "too-large")


def test_a_chunked_body_that_is_too_large(peer: Peer) -> None:
    head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with raw(peer, head, b"10000\r\n", b"x" * 65536, b"\r\n1\r\nx\r\n") as connection:
        assert rest(connection).startswith(b"HTTP/1.1 413 ")


def test_a_head_that_is_too_large(peer: Peer) -> None:
    with raw(peer, b"GET / HTTP/1.1\r\nHost: localhost\r\n") as connection:
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(b"X-Much: %b\r\n" % (b"x" * 1000))
        assert rest(connection).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_bytes_that_are_not_http(peer: Peer, data: bytes) -> None:
    with raw(peer, data) as connection:
        said = rest(connection)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", b""),
        (b"GET / HT", b"HTTP/1.1 408 "),
        (b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{", b"HTTP/1.1 408 "),
    ],
    ids=["silence", "head", "body"],
)
def test_a_request_that_does_not_continue_times_out(peer: Peer, data: bytes, said: bytes) -> None:
    with raw(peer, data) as connection:
        assert rest(connection)[: len(said) or 1] == said


def test_a_client_that_never_reads_is_dropped(peer: Peer, server: serving.ServerProcess) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect((peer.host, peer.port))
        job = peer.submit("talkative")
        worker = peer.worker("talkative")
        worker.claim()
        connection.sendall(b"GET /api/v1/jobs/%b/events HTTP/1.1\r\nHost: localhost\r\n\r\n" % job["handle"].encode())
        assert connection.recv(17) == b"HTTP/1.1 200 OK\r\n"
        deadline = time.monotonic() + process.PATIENCE
        while "client does not read" not in server.stderr:
            assert time.monotonic() < deadline, server.stderr
            assert worker.report(job["handle"], "data", data=b"x" * 60_000).status == 204
    worker.complete(job["handle"])


def test_event_streams_are_bounded(peer: Peer) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(peer.stream("/events")).next("overview")
        answer = peer.call("GET", "/events")
        assert (answer.status, answer.json["kind"]) == (503, "unavailable")


def test_several_requests_on_one_connection(peer: Peer) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with raw(peer, one + one + last) as connection:
        assert rest(connection).count(b'{"status":"ok"') == 3


def test_requests_of_a_client_that_never_reads_cost_no_memory(peer: Peer, server: serving.ServerProcess) -> None:
    """It sends until the server disconnects it."""
    before = peak_memory(server.pid)
    with raw(peer) as connection, contextlib.suppress(ConnectionError):
        for _ in range(32):
            connection.sendall(b"GET /api/v1/overview HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20_000)
        raise AssertionError("32 MB of requests were taken")
    assert peak_memory(server.pid) - before < 16 * 1024**2


def peak_memory(pid: int) -> int:
    """The most memory that the process ever had, in bytes."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024


def test_an_upgrade_is_ignored(peer: Peer) -> None:
    wish = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with raw(peer, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + wish) as connection:
        assert rest(connection).startswith(b"HTTP/1.1 200 ")


def test_the_server_is_healthy_afterwards(peer: Peer, server: serving.ServerProcess) -> None:
    assert peer.ask("GET", "/healthz").status == 200
    assert "request failed" not in server.stderr
    assert "Traceback" not in server.stderr
