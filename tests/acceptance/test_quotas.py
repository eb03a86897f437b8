"""Quotas of users, over every protocol: what exceeds one is refused, and nothing of it happens."""

import asyncio
import contextlib
import hashlib
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import geartrain
from geartrain.address import TLS_SCHEMES
from geartrain.client import control
from geartrain.errors import GeartrainError
from tests.support import certificates, serving
from tests.support.certificates import Certificate
from tests.support.gearman_peer import Kind, Peer
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import until
from tests.support.protocol_ends import async_test

TOKEN = "gt_a-token-for-the-tests-of-quotas"
JOB_BYTES = 512
OPEN = f"--listen=http://{serving.HOST}:0"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificates.self_signed(tmp_path_factory.mktemp("quotas"))


def context_of(files: Certificate) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(files.certificate))
    context.load_cert_chain(files.certificate, files.key)
    return context


def write_users(path: Path, quota: str) -> list[str]:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    path.write_text(
        f'[mailer]\nmay = ["submit"]\ncertificates = ["localhost"]\ntokens = [{{ digest = "sha256:{digest}" }}]\n'
        f'{quota}\n[other]\nmay = ["read"]\naccounts = ["root"]\n'
    )
    return ["--users-file", str(path)]


def mailer(operator: HttpPeer) -> dict[str, Any]:
    [user] = [user for user in operator.get("/users") if user["name"] == "mailer"]
    return dict(user)


@contextlib.contextmanager
def token_server(tmp_path: Path, quota: str, *flags: str, scheme: str = "gearman") -> Iterator[serving.ServerProcess]:
    """The second address is open to operators."""
    users = write_users(tmp_path / "users.toml", quota)
    listen = f"--listen={scheme}://{serving.HOST}:0?may=none"
    store = () if "--store" in flags else ("--store", "memory")
    with serving.serve(*store, *users, listen, OPEN, *flags) as server:
        yield server


def logged_in(server: serving.ServerProcess) -> Peer:
    peer = Peer(server.port)
    assert peer.text(f"auth {TOKEN}").line() == b"OK\r\n"
    return peer


@pytest.mark.parametrize("scheme", [scheme for scheme in TLS_SCHEMES.values() if scheme != "memodb+wss"])
@async_test
async def test_queued_jobs_by_every_protocol(tmp_path: Path, files: Certificate, scheme: str) -> None:
    users = write_users(tmp_path / "users.toml", "max_queued_jobs = 2")
    tls = ["--tls-certificate", str(files.both), "--tls-ca", str(files.certificate)]
    listens = [f"--listen={scheme}://{serving.HOST}:0?may=none", OPEN]
    with serving.serve("--store", "memory", *users, *tls, *listens) as server:
        operator = HttpPeer(server.urls[1])
        async with geartrain.AsyncClient(server.url, tls=context_of(files), patience=2) as client:
            for _ in range(2):
                await client.submit("mail", background=client.capabilities.background)
            with contextlib.suppress(GeartrainError):
                await client.submit("mail", background=client.capabilities.background)
            await asyncio.to_thread(until, lambda: mailer(operator)["queued_jobs"] == 2, "two jobs")
            assert operator.get("/functions/mail")["queued"] == 2
            jobs = operator.get("/jobs")["items"]
            assert [job["user"] for job in jobs] == ["mailer", "mailer"]
            if client.capabilities.background:
                operator.post(f"/jobs/{jobs[0]['handle']}/cancel")
                await client.submit("mail", background=True)
                with pytest.raises(GeartrainError):
                    await client.submit("mail", background=True)
        assert mailer(operator)["queued_jobs"] == (2 if client.capabilities.background else 0)


def test_queued_bytes(tmp_path: Path) -> None:
    with token_server(tmp_path, 'max_queued_bytes = "2KiB"') as server, logged_in(server) as peer:
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x" * (2049 - JOB_BYTES))
        code, text = peer.error()
        assert code == "QUEUE_ERROR" or "max_queued_bytes" in text
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x" * (2048 - JOB_BYTES))
        assert peer.packet()[0] == Kind.JOB_CREATED
        operator = HttpPeer(server.urls[1])
        assert (mailer(operator)["queued_bytes"], mailer(operator)["max_queued_bytes"]) == (2048, 2048)
        worker = operator.worker("mail")
        worker.complete(worker.claim()["handle"])
        assert (mailer(operator)["queued_bytes"], mailer(operator)["queued_jobs"]) == (0, 0)


def test_jobs_count_after_a_kill(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/jobs.db")
    with token_server(tmp_path, "max_queued_jobs = 2", *store) as server:
        with logged_in(server) as peer:
            for _ in range(2):
                peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x")
                assert peer.packet()[0] == Kind.JOB_CREATED
        server.kill()
    with token_server(tmp_path, "max_queued_jobs = 2", *store) as server, logged_in(server) as peer:
        operator = HttpPeer(server.urls[1])
        assert (mailer(operator)["queued_jobs"], mailer(operator)["queued_bytes"]) == (2, 2 * (JOB_BYTES + 1))
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x")
        peer.error()
        worker = operator.worker("mail")
        worker.complete(worker.claim()["handle"])
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x")
        assert peer.packet()[0] == Kind.JOB_CREATED


def test_connections_by_gearman(tmp_path: Path) -> None:
    with token_server(tmp_path, "max_connections = 1") as server:
        operator = HttpPeer(server.urls[1])
        with logged_in(server) as peer:
            with Peer(server.port) as second:
                assert second.text(f"auth {TOKEN}").line().startswith(b"ERR LIMIT_REACHED ")
                assert second.text("status").line().startswith(b"ERR NOT_ALLOWED "), "it is still nobody"
            assert peer.text(f"auth {TOKEN}").line() == b"OK\r\n", "it has its place already"
            assert mailer(operator)["connections"] == 1
        until(lambda: mailer(operator)["connections"] == 0, "the connection is gone")
        logged_in(server).close()


def test_connections_by_redis(tmp_path: Path) -> None:
    with token_server(tmp_path, "max_connections = 1", scheme="gearmonkey") as server, contextlib.ExitStack() as stack:
        answers = []
        for _ in range(2):
            peer = stack.enter_context(socket.create_connection((serving.HOST, server.port)))
            peer.sendall(f"AUTH {TOKEN}\r\n".encode())
            answers.append(peer.recv(1000))
        assert answers[0] == b"+OK\r\n"
        assert b"max_connections" in answers[1]


def test_connections_by_periodic(tmp_path: Path) -> None:
    """By a socket file, where the account proves who connects."""
    path = tmp_path / "periodic.sock"
    users = tmp_path / "users.toml"
    users.write_text('[mailer]\nmay = ["submit"]\naccounts = ["root"]\nmax_connections = 1\n')
    listen = f"--listen=periodic+unix://{path}?may=none"
    with serving.serve("--store", "memory", "--users-file", str(users), listen, OPEN) as server:
        with geartrain.Client(server.url, patience=1) as client:
            client.submit("mail", background=True)
            with pytest.raises(GeartrainError), geartrain.Client(server.url, patience=0.2) as second:
                second.submit("mail", background=True)
        assert mailer(HttpPeer(server.urls[1]))["queued_jobs"] == 1


@pytest.mark.parametrize("scheme", ["dangas", "memodb+tls", "memodb+wss"])
def test_connections_by_certificate(tmp_path: Path, files: Certificate, scheme: str) -> None:
    """By protocols that cannot carry a token."""
    users = write_users(tmp_path / "users.toml", "max_connections = 1")
    tls = ["--tls-certificate", str(files.both), "--tls-ca", str(files.certificate)]
    listens = [f"--listen={scheme}://{serving.HOST}:0?may=none", OPEN]
    with serving.serve("--store", "memory", *users, *tls, *listens) as server:
        operator = HttpPeer(server.urls[1])

        def connect() -> ssl.SSLSocket:
            plain = socket.create_connection((serving.HOST, server.port), timeout=30)
            return context_of(files).wrap_socket(plain, server_hostname="localhost")

        with connect():
            until(lambda: mailer(operator)["connections"] == 1, "the first is counted")
            with connect() as second:
                with contextlib.suppress(ssl.SSLError, ConnectionError):
                    while second.recv(1000):  # what the protocol says about it
                        pass
                assert server.says("max_connections")
            assert mailer(operator)["connections"] == 1
        until(lambda: mailer(operator)["connections"] == 0, "the connection is gone")
        with connect():
            until(lambda: mailer(operator)["connections"] == 1, "there is room again")


def test_connections_by_http(tmp_path: Path) -> None:
    with token_server(tmp_path, "max_connections = 1", scheme="http") as server:
        peer = HttpPeer(server.url, TOKEN)
        first = peer.send("GET", "/api/v1/session")
        assert first.getresponse().read()
        first.request(
            "POST", "/api/v1/jobs", b'{"function": "mail"}', {**peer.headers, "Content-Type": "application/json"}
        )
        assert first.getresponse().status == 201
        answer = peer.call("POST", "/jobs", {"function": "mail"})
        assert (answer.status, "max_connections" in answer.json["detail"]) == (503, True)
        first.close()
        until(lambda: mailer(HttpPeer(server.urls[1]))["connections"] == 0, "the connection is gone")
        assert peer.call("POST", "/jobs", {"function": "mail"}).status == 201


def test_reload_changes_limits_and_keeps_connections(tmp_path: Path) -> None:
    with token_server(tmp_path, "max_queued_jobs = 1") as server, logged_in(server) as peer:
        operator = HttpPeer(server.urls[1])
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x")
        assert peer.packet()[0] == Kind.JOB_CREATED
        write_users(tmp_path / "users.toml", "max_queued_jobs = 2")
        server.signal(signal.SIGHUP)
        until(lambda: mailer(operator)["max_queued_jobs"] == 2, "the new limit")
        assert (mailer(operator)["queued_jobs"], mailer(operator)["connections"]) == (1, 1)
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x")
        assert peer.packet()[0] == Kind.JOB_CREATED
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", b"x")
        peer.error()


@async_test
async def test_users_are_for_admins(tmp_path: Path) -> None:
    with token_server(tmp_path, "", scheme="http") as server:
        assert HttpPeer(server.url, TOKEN).call("GET", "/users").status == 403
        async with geartrain.AsyncClient(server.urls[1]) as operator:
            listed = await control.ask(operator, "users")
        assert [(user["name"], user["may"]) for user in listed] == [("mailer", ["submit"]), ("other", ["read"])]


@pytest.mark.parametrize("quota", ["max_connections = -1", 'max_queued_bytes = "many"', "max_queued_jobs = 1.5"])
def test_wrong_quota_is_refused(tmp_path: Path, quota: str) -> None:
    with pytest.raises(AssertionError, match=quota.partition(" ")[0]), token_server(tmp_path, quota):
        pass
