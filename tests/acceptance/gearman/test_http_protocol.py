"""gearmand's HTTP protocol: what curl and Python's http.client see, on gearmand and on ours in its place."""

import contextlib
import http.client
import random
import socket
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, Start
from tests.support.peer import until

DIFFERS = pytest.mark.differs_from_gearmand


class HttpServer(NamedTuple):
    """A server with both protocols."""

    gearman: int
    http: int


class Answer(NamedTuple):
    """What matters of an HTTP answer."""

    status: int
    command: str
    handle: str
    body: bytes


@contextlib.contextmanager
def serve(start: Start, *options: str) -> Iterator[HttpServer]:
    """gearmand does not say which port it chose, so it is told."""
    port = next(filter(serving.is_free, random.sample(serving.PORTS, 20)))
    with start("-r", "http", f"--http-port={port}", *options) as server:
        yield HttpServer(server.port, port)


@pytest.fixture
def server(drop_in: Start) -> Iterator[HttpServer]:
    with serve(drop_in) as running:
        yield running


class Question:
    """A request that was sent; `answer` reads what came of it."""

    def __init__(self, port: int, target: str, method: str = "POST", body: bytes | None = None, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, target, body, names)

    def close(self) -> None:
        self._connection.close()

    def answer(self) -> Answer:
        response = self._connection.getresponse()
        body = response.read()
        headers = response.headers
        self.close()
        return Answer(response.status, headers["X-Gearman-Command"] or "", headers["X-Gearman-Job-Handle"] or "", body)


def test_a_result_is_the_body(server: HttpServer) -> None:
    with Peer(server.gearman) as worker:
        question = Question(server.http, "/reverse", body=b"hello \0 world")
        job = worker.register(b"reverse").grab(Kind.GRAB_JOB_UNIQ)
        assert (job.function, job.unique, job.data) == (b"reverse", b"-", b"hello \0 world")
        worker.send(Kind.WORK_COMPLETE, job.handle, b"dlrow")
        assert question.answer() == (200, "WORK_COMPLETE", job.handle.decode(), b"dlrow")


def test_a_get_has_no_payload(server: HttpServer) -> None:
    with Peer(server.gearman) as worker:
        question = Question(server.http, "/now", "GET")
        job = worker.register(b"now").grab()
        assert job.data == b""
        worker.send(Kind.WORK_COMPLETE, job.handle, b"noon")
        assert question.answer().body == b"noon"


@pytest.mark.parametrize("target", ["a/b", "a%20b", "mail?urgent=1"])
def test_a_name_is_the_target_as_it_was_sent(server: HttpServer, target: str) -> None:
    with Peer(server.gearman) as worker:
        question = Question(server.http, f"/{target}", "PUT", b"x")
        job = worker.register(target.encode()).grab()
        worker.send(Kind.WORK_COMPLETE, job.handle, b"")
        assert question.answer() == (200, "WORK_COMPLETE", job.handle.decode(), b"")


def test_failures(server: HttpServer) -> None:
    with Peer(server.gearman) as worker:
        for kind, rest in ((Kind.WORK_FAIL, ()), (Kind.WORK_EXCEPTION, (b"boom",))):
            question = Question(server.http, "/f", body=b"x")
            worker.register(b"f").send(kind, worker.grab().handle, *rest)
            status, command, _, body = question.answer()
            assert (status, command, body) == (200, "WORK_FAIL", b"")


def test_exceptions_for_everybody(drop_in: Start) -> None:
    with serve(drop_in, "--exceptions") as server, Peer(server.gearman) as worker:
        question = Question(server.http, "/f", body=b"x")
        handle = worker.register(b"f").grab().handle
        worker.send(Kind.WORK_EXCEPTION, handle, b"boom")
        assert question.answer() == (200, "WORK_EXCEPTION", handle.decode(), b"boom")


def test_background_unique_and_priority(server: HttpServer) -> None:
    with Peer(server.gearman) as admin, Peer(server.gearman) as worker:
        answers = {}
        for priority in ("low", "high", "urgent"):
            question = Question(
                server.http, "/f", body=b"x", X_Gearman_Background="true", X_Gearman_Priority=priority,
                X_Gearman_Unique=f"key-{priority}",
            )  # fmt: skip
            answers[priority] = question.answer()
            assert answers[priority][:2] == (200, "JOB_CREATED")
        admin.text("prioritystatus")
        assert admin.block() == [b"f\t1\t1\t1\t0"]
        again = Question(server.http, "/f", body=b"y", X_Gearman_Background="TRUE", X_Gearman_Unique="key-low")
        assert again.answer().handle == answers["low"].handle
        worker.register(b"f")
        for priority in ("high", "urgent", "low"):
            job = worker.grab(Kind.GRAB_JOB_UNIQ)
            assert (job.handle.decode(), job.unique) == (answers[priority].handle, f"key-{priority}".encode())


def test_jobs_with_the_same_payload_are_one(server: HttpServer) -> None:
    first, second, other = (
        Question(server.http, "/f", body=body, X_Gearman_Background="true").answer().handle
        for body in (b"same", b"same", b"other")
    )
    assert first == second != other


@DIFFERS
def test_the_queued_job_of_a_client_that_disconnects_is_removed(server: HttpServer) -> None:
    with Peer(server.gearman) as admin:

        def jobs() -> list[bytes]:
            return admin.text("show jobs").block()

        question = Question(server.http, "/f", body=b"x")
        until(lambda: len(jobs()) == 1, "the job is queued")
        question.close()
        until(lambda: jobs() == [], "the job is removed")


@pytest.mark.parametrize("version", ["--http1.0", "--http1.1"])
def test_curl(server: HttpServer, version: str) -> None:
    url = f"http://127.0.0.1:{server.http}/reverse"
    with Peer(server.gearman) as worker:
        worker.register(b"reverse")
        curl = subprocess.Popen(
            ["curl", "-s", "-S", version, "--data-binary", "hello", "-H", "X-Gearman-Priority: high", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        job = worker.grab()
        worker.send(Kind.WORK_COMPLETE, job.handle, job.data[::-1])
        assert curl.communicate(timeout=60) == (b"olleh", b"")


@pytest.mark.parametrize("version", [b"1.0", pytest.param(b"1.1", marks=DIFFERS)])
def test_answer_has_the_version_of_the_request(server: HttpServer, version: bytes) -> None:
    """gearmand answers HTTP/1.0 to every request."""
    head = b"POST /versions HTTP/%b\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nX-Gearman-Background: true\r\n" % version
    with socket.create_connection(("127.0.0.1", server.http), timeout=60) as client, client.makefile("rb") as answer:
        client.sendall(head + b"\r\nx")
        assert answer.readline() == b"HTTP/%b 200 OK\r\n" % version


@DIFFERS
def test_the_api_and_the_dashboard_keep_their_paths(server: HttpServer) -> None:
    assert b"<title>Geartrain" in Question(server.http, "/", "GET").answer().body
    for path in ("/api/v1/overview", "/healthz", "/metrics", "/main.js"):
        assert Question(server.http, path, "GET").answer()[:2] == (200, "")
    assert Question(server.http, "/api/v1/nothing", "GET").answer().status == 404
    assert Question(server.http, "/favicon.ico", "GET").answer().status == 404
    assert Question(server.http, "/main.js", "POST").answer().status == 405


@DIFFERS
def test_errors_have_a_status(server: HttpServer) -> None:
    """gearmand says 200 to all of these, and closes the connection of another method."""
    answer = Question(server.http, "/f", X_Gearman_Unique="u" * 65).answer()
    assert answer[:2] == (400, "ERROR")
    with Peer(server.gearman) as admin:
        assert admin.text("create function f").line() == b"OK\r\n"
        assert admin.text("maxqueue f 1").line() == b"OK\r\n"
    assert Question(server.http, "/f", body=b"1", X_Gearman_Background="true").answer().status == 200
    assert Question(server.http, "/f", body=b"2", X_Gearman_Background="true").answer()[:2] == (429, "ERROR")
    assert Question(server.http, "/f", "DELETE").answer().status == 405


@DIFFERS
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Referer": "http://evil.example/page"}, 403),
        ({"Host": "evil.example"}, 421),
    ],
    ids=str,
)
def test_pages_of_other_sites_submit_nothing(
    server: HttpServer, method: str, headers: dict[str, str], status: int
) -> None:
    question = Question(server.http, "/f", method, b"", X_Gearman_Background="true", **headers)
    assert question.answer().status == status
    with Peer(server.gearman) as admin:
        admin.text("status")
        assert admin.block() == []


@DIFFERS
def test_other_machines_may_only_submit(start: Start) -> None:
    """Without a token. The address of another machine is not at hand, so the test uses one of this machine's own."""
    own = serving_address()
    with serving.serve(
        "--store", "memory", "--listen", f"http://{own}:0", "--listen", "gearman://127.0.0.1:0", "--gearmand-http"
    ) as server:
        url = server.urls[0]

        def ask(path: str, method: str = "GET", host: str = "") -> int:
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
            connection.request(
                method, path, b"{}", {"X-Gearman-Background": "true", **({"Host": host} if host else {})}
            )
            status = connection.getresponse().status
            connection.close()
            return status

        assert ask("/f", "POST") == 200
        assert ask("/f", "POST", "evil.example") == 421
        assert ask("/api/v1/jobs", "GET", "localhost") == 403
        assert ask("/geartrain.control", "POST") == 403


def serving_address() -> str:
    """An address of this machine that is not its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no other address")
        address: str = probe.getsockname()[0]
    return address


@DIFFERS
def test_a_token_is_required_where_one_is_set() -> None:
    tokens = ["--http-tokens", "submit:a-secret-of-sixteen", "--http-tokens", "read:another-of-sixteen"]
    with serving.serve("--store", "memory", "--listen", "http://127.0.0.1:0", "--gearmand-http", *tokens) as server:

        def ask(**headers: str) -> int:
            return Question(server.port, "/f", body=b"x", X_Gearman_Background="true", **headers).answer().status

        assert ask() == 401
        assert ask(Authorization="Bearer another-of-sixteen") == 403
        assert ask(Authorization="Bearer a-secret-of-sixteen") == 200
