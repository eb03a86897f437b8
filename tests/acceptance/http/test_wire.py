"""What the door writes is HTTP/1.1 to a strict reader, and whoever breaks the rules is told so and harms nobody.

The strict reader is h11, which refuses what browsers would forgive.
"""

import contextlib
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import h11
import pytest

from tests.acceptance.http.conftest import HTTP
from tests.support import process, serving
from tests.support.http_peer import Peer

HOST = ("Host", "localhost")
POST = (
    b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
)
ONE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Answer(NamedTuple):
    """One response, as h11 understood it."""

    status: int
    headers: dict[str, str]
    body: bytes
    version: str = "1.1"
    before: tuple[int, ...] = ()  # informational responses


class StrictPeer:
    """A client on one connection that reads with h11."""

    def __init__(self, peer: Peer) -> None:
        self.socket = socket.create_connection((peer.host, peer.port), process.PATIENCE)
        self.h11 = h11.Connection(h11.CLIENT)

    def __enter__(self) -> "StrictPeer":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, method: str, target: str, body: bytes = b"", *headers: tuple[str, str], whole: bool = True) -> Answer:
        """Ask, and read the answer."""
        more = (
            (("Content-Length", str(len(body))),)
            if body and not any(n == "Transfer-Encoding" for n, _ in headers)
            else ()
        )
        self.send(h11.Request(method=method, target=target, headers=[HOST, *more, *headers]))
        if body:
            self.send(h11.Data(data=body))
        self.send(h11.EndOfMessage())
        return self.answer()

    def send(self, event: h11.Event) -> None:
        data = self.h11.send(event)
        if data:
            self.socket.sendall(data)

    def next(self) -> h11.Event:
        while (event := self.h11.next_event()) is h11.NEED_DATA:
            self.h11.receive_data(self.socket.recv(65536))
        assert isinstance(event, h11.Event), event
        return event

    def answer(self) -> Answer:
        """The next response, and then the next request may be sent."""
        before = []
        while isinstance(event := self.next(), h11.InformationalResponse):
            before.append(event.status_code)
        assert isinstance(event, h11.Response)
        body = b""
        while not isinstance(part := self.next(), h11.EndOfMessage):
            assert isinstance(part, h11.Data)
            body += part.data
        names = [name for name, _ in event.headers]
        assert len(names) == len(set(names)), names
        headers = {name.decode(): value.decode() for name, value in event.headers}
        if self.h11.our_state is h11.DONE and self.h11.their_state is h11.DONE:
            self.h11.start_next_cycle()
        return Answer(event.status_code, headers, body, event.http_version.decode(), tuple(before))


@pytest.fixture
def strict(peer: Peer) -> Iterator[StrictPeer]:
    with StrictPeer(peer) as made:
        yield made


@contextlib.contextmanager
def raw(peer: Peer, *parts: bytes) -> Iterator[socket.socket]:
    with socket.create_connection((peer.host, peer.port), process.PATIENCE) as connection:
        for part in parts:
            connection.sendall(part)
        yield connection


def rest(connection: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65536):
            data += more
    return data


def statuses(said: bytes) -> list[int]:
    """Of all answers."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", said)]


def test_every_kind_of_answer_on_one_connection(strict: StrictPeer, function: str) -> None:
    job = json.dumps({"function": function}).encode()
    typed = ("Content-Type", "application/json")
    assert strict.ask("GET", "/healthz").status == 200
    made = strict.ask("POST", "/api/v1/jobs", job, typed)
    assert made.status == 201
    assert made.headers["location"] == f"/api/v1/jobs/{json.loads(made.body)['handle'].replace(':', '%3A')}"
    assert strict.ask("POST", "/api/v1/jobs", job, typed, ("Transfer-Encoding", "chunked")).status == 201
    assert strict.ask("POST", "/api/v1/jobs", b"{", typed).status == 400
    assert strict.ask("GET", "/none").status == 404
    assert strict.ask("PATCH", "/api/v1/jobs").status == 405
    assert strict.ask("POST", "/api/v1/logout").status == 204
    page = strict.ask("GET", "/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert strict.ask("GET", "/", b"", ("If-None-Match", page.headers["etag"])).status == 304
    head = strict.ask("HEAD", "/")
    assert (head.status, head.headers["content-length"], head.body) == (200, str(len(page.body)), b"")
    assert strict.ask("GET", "http://localhost/healthz").status == 200
    assert strict.ask("OPTIONS", "/api/v1/jobs").status == 405
    assert strict.ask("GET", "/metrics").status == 200
    last = strict.ask("GET", "/healthz", b"", ("Connection", "close"))
    assert (last.status, last.headers["connection"]) == (200, "close")
    assert strict.socket.recv(1) == b""


def test_a_job_is_claimed_and_completed(strict: StrictPeer, function: str) -> None:
    typed = ("Content-Type", "application/json")
    worker = json.loads(
        strict.ask("POST", "/api/v1/workers", json.dumps({"functions": [function]}).encode(), typed).body
    )
    path = f"/api/v1/workers/{worker['id']}"
    assert strict.ask("POST", f"{path}/claim").status == 204
    strict.ask("POST", "/api/v1/jobs", json.dumps({"function": function}).encode(), typed)
    job = json.loads(strict.ask("POST", f"{path}/claim").body)
    handle = job["handle"].replace(":", "%3A")
    assert strict.ask("POST", f"{path}/jobs/{handle}/data", b"x" * 100_000).status == 204
    assert strict.ask("POST", f"{path}/jobs/{handle}/complete", b"result").status == 204
    assert strict.ask("DELETE", path).status == 204


def test_a_stream_is_chunked(peer: Peer, strict: StrictPeer) -> None:
    strict.send(h11.Request(method="GET", target="/api/v1/events", headers=[HOST]))
    strict.send(h11.EndOfMessage())
    event = strict.next()
    assert isinstance(event, h11.Response)
    assert (b"transfer-encoding", b"chunked") in event.headers
    data = b""
    while b"event: overview" not in data:
        part = strict.next()
        assert isinstance(part, h11.Data)
        data += part.data


def test_a_stream_that_ends_leaves_the_connection_open(peer: Peer, strict: StrictPeer, function: str) -> None:
    job = peer.submit(function)
    peer.post(f"/jobs/{job['handle']}/cancel")
    events = strict.ask("GET", f"/api/v1/jobs/{job['handle']}/events")
    assert b"event: failed" in events.body
    assert strict.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("option", [b"", b"Connection: keep-alive\r\n"], ids=["close", "keep-alive"])
def test_answers_to_old_requests(peer: Peer, option: bytes) -> None:
    old = b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n" + option + b"\r\n"
    with raw(peer, old) as connection:
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
        if option:
            assert b"\r\nconnection: keep-alive\r\n" in answer
            connection.sendall(old.replace(option, b""))
            assert connection.recv(65536).startswith(b"HTTP/1.0 200 ")
        assert rest(connection) == b""


def test_a_stream_for_an_old_client_ends_with_the_connection(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    peer.post(f"/jobs/{job['handle']}/cancel")
    with raw(
        peer, f"GET /api/v1/jobs/{job['handle']}/events HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()
    ) as connection:
        said = rest(connection)
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body.startswith(b"retry: ")
    assert body.endswith(b"\n\n")


def test_pipelined_answers_are_in_order(peer: Peer, function: str) -> None:
    """A request that waits holds those behind it."""
    waits = json.dumps({"function": function, "background": False, "wait": 0.2}).encode()
    last = ONE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with raw(
        peer, ONE + POST % (len(waits), waits) + b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n" + last
    ) as connection:
        said = rest(connection)
    assert statuses(said) == [200, 504, 404, 200]


def test_many_pipelined_submits_are_all_answered(peer: Peer, function: str) -> None:
    body = json.dumps({"function": function}).encode()
    last = ONE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with raw(peer, POST % (len(body), body) * 500 + last) as connection:
        said = rest(connection)
    assert said.count(b"HTTP/1.1 201 Created\r\n") == 500
    assert peer.get(f"/functions/{function}")["queued"] == 500


def test_a_client_that_sends_byte_by_byte(peer: Peer, function: str) -> None:
    body = json.dumps({"function": function}).encode()
    head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    with socket.create_connection((peer.host, peer.port), process.PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in head + b"Content-Length: %d\r\n\r\n" % len(body) + body:
            connection.sendall(bytes([byte]))
        assert rest(connection).startswith(b"HTTP/1.1 201 ")


def test_a_client_that_waits_for_our_consent_gets_it(strict: StrictPeer, function: str) -> None:
    body = json.dumps({"function": function}).encode()
    headers = [
        HOST,
        ("Content-Length", str(len(body))),
        ("Content-Type", "application/json"),
        ("Expect", "100-continue"),
    ]
    strict.send(h11.Request(method="POST", target="/api/v1/jobs", headers=headers))
    consent = strict.next()
    assert isinstance(consent, h11.InformationalResponse)
    assert consent.status_code == 100
    strict.send(h11.Data(data=body))
    strict.send(h11.EndOfMessage())
    assert strict.answer().status == 201


def test_a_request_that_is_refused_gets_no_consent(strict: StrictPeer) -> None:
    headers = [HOST, ("Content-Length", "10"), ("Expect", "100-continue"), ("Origin", "http://evil.example")]
    strict.send(h11.Request(method="POST", target="/api/v1/jobs", headers=headers))
    answer = strict.answer()
    assert (answer.status, answer.before, answer.headers["connection"]) == (403, (), "close")


BAD = {
    "length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "chunk": b"POST /api/v1/logout HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "version": b"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
    "line feed": b"GET / HTTP/1.1\nHost: localhost\n\n",
    "long header": b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 70_000,
    "no http": b"SSH-2.0-client\r\n",
}


@pytest.mark.parametrize("name", BAD)
def test_a_request_that_breaks_the_rules_harms_no_neighbour(peer: Peer, name: str) -> None:
    with raw(peer, ONE[:-2]) as neighbour, StrictPeer(peer) as other:
        assert other.ask("GET", "/healthz").status == 200
        with raw(peer) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(BAD[name])
            said = rest(connection)
        reader = h11.Connection(h11.CLIENT)
        reader.send(h11.Request(method="GET", target="/", headers=[HOST]))
        reader.receive_data(said)
        reader.receive_data(b"")
        response = reader.next_event()
        assert isinstance(response, h11.Response)
        assert response.status_code == (431 if name == "long header" else 400)
        body = reader.next_event()
        assert isinstance(body, h11.Data)
        assert json.loads(bytes(body.data))["detail"]
        neighbour.sendall(b"\r\n")
        assert neighbour.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert other.ask("GET", "/healthz").status == 200


def test_what_was_answered_before_a_mistake_arrives(peer: Peer) -> None:
    with raw(peer, ONE + ONE + b"GET / HTTP/9.9\r\n\r\n" + ONE) as connection:
        said = rest(connection)
    assert statuses(said) == [200, 200, 400]


def test_a_smuggled_request_is_not_answered(peer: Peer) -> None:
    inner = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with raw(peer, head % (len(inner) + 5) + inner) as connection:
        said = rest(connection)
    assert said.count(b"HTTP/1.1 ") == 1
    assert said.startswith(b"HTTP/1.1 400 ")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--http1.0",),
        ("--http2",),
        ("--header", "Transfer-Encoding: chunked"),
        ("--header", "Expect: 100-continue"),
    ],
)
def test_curl(peer: Peer, function: str, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Two requests over one connection, if curl keeps it."""
    body = json.dumps({"function": function, "payload": "x" * 30_000})
    (tmp_path / "body").write_text(body)
    url = f"http://{peer.host}:{peer.port}/api/v1/jobs"
    ask = ("--fail", "--silent", "--show-error", "--header", "Content-Type: application/json", *options)
    words = ["curl", *ask, "--data-binary", f"@{tmp_path / 'body'}", url]
    done = subprocess.run(
        [*words, "--next", *words[1:]], capture_output=True, text=True, timeout=process.PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"state":"queued"') == 2


def test_a_graceful_stop_answers_the_request_that_waits() -> None:
    """And closes its connection afterwards; an idle one is closed at once."""
    with serving.serve("--store", "memory", "--listen", HTTP) as server:
        peer = Peer(server.url)
        worker = peer.worker("slow")
        with StrictPeer(peer) as idle, StrictPeer(peer) as waiting:
            assert idle.ask("GET", "/healthz").status == 200
            waiting.send(h11.Request(method="POST", target=f"/api/v1{worker.path}/claim?wait=60", headers=[HOST]))
            waiting.send(h11.EndOfMessage())
            peer.get("/overview")
            server.stop()
            assert waiting.answer().status == 204
            assert waiting.socket.recv(1) == b""
            assert idle.socket.recv(1) == b""
