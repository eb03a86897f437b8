"""Who may do what, by the library: submit, work and operate with every scope; users, tokens, what a reload changes.

Every single request is in test_rights_table.py.
"""

import contextlib
import hashlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

import geartrain
from geartrain.client import control
from geartrain.errors import AdminError, GeartrainError
from geartrain.rights import ADMIN, READ, SCOPES, SUBMIT, WORK
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.http_peer import Peer as HttpPeer
from tests.support.protocol_ends import async_test, connected_worker

DOORS = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")
TOKEN = "gt_a-token-for-the-tests-of-rights"
CONTROL_VERBS = {READ: ("functions", {}), ADMIN: ("pause", {"function": "paused.by.test"})}


def digest(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[tuple[str, str], str]]:
    """A server with an address for each door and scope, by both; and an open one."""
    pairs = [(door, scope) for door in DOORS for scope in SCOPES]
    listens = [f"--listen={door}://{serving.HOST}:0?may={scope}" for door, scope in pairs]
    with serving.serve("--store", "memory", *listens, f"--listen=gearman://{serving.HOST}:0") as server:
        yield {**dict(zip(pairs, server.urls, strict=False)), ("open", ""): server.urls[-1]}


def allowed(scope: str, needed: str) -> bool:
    return scope in (ADMIN, needed)


async def state(urls: dict[tuple[str, str], str], verb: str, **arguments: Any) -> Any:
    """What an operator sees at the open address."""
    async with geartrain.AsyncClient(urls["open", ""]) as operator:
        return await control.ask(operator, verb, **arguments)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("door", DOORS)
@async_test
async def test_submit(urls: dict[tuple[str, str], str], door: str, scope: str) -> None:
    function = f"submit.{door}.{scope}"
    async with geartrain.AsyncClient(urls[door, scope], patience=1) as client:
        if not client.capabilities.background:
            pytest.skip("foreground jobs only; test_rights_table.py has it")
        refused = contextlib.nullcontext() if allowed(scope, SUBMIT) else pytest.raises(geartrain.ClientError)
        with refused:
            await client.submit(function, background=True)
    jobs = await state(urls, "jobs", function=function)
    assert len(jobs["items"]) == allowed(scope, SUBMIT)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("door", DOORS)
@async_test
async def test_work(urls: dict[tuple[str, str], str], door: str, scope: str) -> None:
    """A worker that is refused gets no job; one that is allowed gets it."""
    function = f"work.{door}.{scope}"
    async with geartrain.AsyncClient(urls["open", ""]) as client:
        job = await client.submit(function, b"payload")
        if allowed(scope, WORK):
            async with connected_worker(urls[door, scope], function.encode()) as worker:
                worker.complete(await worker.job(), b"done")
                assert await job.result(30) == b"done"
            return
        with contextlib.suppress(GeartrainError, OSError):
            async with connected_worker(urls[door, scope], function.encode()):
                pass
        assert (await state(urls, "function", name=function))["running"] == 0


@pytest.mark.parametrize("needed", CONTROL_VERBS)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("door", DOORS)
@async_test
async def test_control(urls: dict[tuple[str, str], str], door: str, scope: str, needed: str) -> None:
    """The control function asks for the scope of its verb, by whatever door it is reached."""
    verb, arguments = CONTROL_VERBS[needed]
    async with geartrain.AsyncClient(urls[door, scope], patience=1) as client:
        if allowed(scope, needed):
            await control.ask(client, verb, **arguments)
        else:
            with pytest.raises((AdminError, geartrain.RefusedError), match=r"no right|scope"):
                await control.ask(client, verb, **arguments)


class RedisPeer:
    """A connection that sends commands of Redis and returns the first line of each reply."""

    def __init__(self, url: str) -> None:
        self._socket = socket.create_connection((serving.HOST, int(url.rpartition(":")[2])), timeout=30)
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, *words: str) -> bytes:
        self._socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w.encode()) for w in words))
        return self._lines.readline()


# Users


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.toml"
    path.write_text(
        f'[mailer]\nmay = ["submit:mail.*", "read:mail.*"]\ntokens = [{{ digest = "{digest(TOKEN)}" }}]\n'
        f'[boss]\nmay = ["admin"]\ntokens = [{{ digest = "{digest(TOKEN + "2")}" }}]\n'
    )
    return path


def closed_server(users: Path, *schemes: str) -> contextlib.AbstractContextManager[serving.ServerProcess]:
    """A server at whose addresses peers without an identity may do nothing."""
    listens = [f"--listen={scheme}://{serving.HOST}:0?may=none" for scheme in schemes]
    return serving.serve("--store", "memory", "--users-file", str(users), *listens)


def test_token_of_a_gearman_peer(users: Path) -> None:
    with closed_server(users, "gearman") as server, Peer(server.port) as peer:
        assert peer.text("status").line().startswith(b"ERR NOT_ALLOWED ")
        assert peer.text("auth nonsense").line() == b"ERR NOT_ALLOWED unknown+token\r\n"
        assert peer.text(f"auth {TOKEN}").line() == b"OK\r\n"
        peer.send(Kind.SUBMIT_JOB_BG, b"other", b"", b"")
        assert peer.error()[0] == "NOT_ALLOWED"
        for function in (b"mail.send", b"mail.fetch"):
            peer.send(Kind.SUBMIT_JOB_BG, function, b"", b"")
            assert peer.packet()[0] == Kind.JOB_CREATED
        peer.text("status")
        assert [peer.line().partition(b"\t")[0] for _ in range(2)] == [b"mail.send", b"mail.fetch"]
        assert peer.line() == b".\n"


def test_token_of_an_http_client(users: Path) -> None:
    with closed_server(users, "http") as server:
        assert HttpPeer(server.url).call("GET", "/functions").status == 401
        assert HttpPeer(server.url, "nonsense").call("GET", "/functions").status == 401
        mailer, boss = HttpPeer(server.url, TOKEN), HttpPeer(server.url, TOKEN + "2")
        for function, status in (("mail.send", 201), ("other", 403)):
            assert mailer.call("POST", "/jobs", {"function": function}).status == status
        assert boss.call("POST", "/jobs", {"function": "other"}).status == 201
        assert [item["name"] for item in mailer.get("/functions")["items"]] == ["mail.send"]
        assert [item["function"] for item in mailer.get("/jobs")["items"]] == ["mail.send"]
        assert {item["name"] for item in boss.get("/functions")["items"]} == {"mail.send", "other"}
        other = boss.get("/jobs?function=other")["items"][0]["handle"]
        for path in (f"/jobs/{other}", f"/jobs/{other}/payload", f"/jobs/{other}/events", "/functions/other"):
            assert mailer.call("GET", path).status == 403
        assert mailer.call("POST", "/functions/mail.send/pause").status == 403
        assert mailer.call("GET", "/system").status == 403
        assert mailer.get("/session")["user"] == "mailer"


def test_token_of_a_redis_client(users: Path) -> None:
    with closed_server(users, "gearmonkey") as server, RedisPeer(server.url) as peer:
        assert peer.ask("KEYS", "*").startswith(b"-NOPERM ")
        assert peer.ask("AUTH", "nonsense").startswith(b"-WRONGPASS ")
        assert peer.ask("AUTH", "boss", TOKEN).startswith(b"-WRONGPASS ")
        assert peer.ask("AUTH", "mailer", TOKEN) == b"+OK\r\n"
        assert peer.ask("INCR", "uid:mail.send").startswith(b":")
        assert peer.ask("INCR", "uid:other").startswith(b"-NOPERM ")


def test_revoked_user_is_disconnected_and_others_stay(users: Path) -> None:
    with closed_server(users, "gearman") as server, Peer(server.port) as mailer, Peer(server.port) as boss:
        assert mailer.text(f"auth {TOKEN}").line() == b"OK\r\n"
        assert boss.text(f"auth {TOKEN}2").line() == b"OK\r\n"
        users.write_text(users.read_text().partition("[boss]")[1] + users.read_text().partition("[boss]")[2])
        server.signal(signal.SIGHUP)
        assert server.says("users reloaded")
        mailer.closed()
        boss.text("status")
        assert boss.line() == b".\n"
        users.write_text("nonsense = 1\n")
        server.signal(signal.SIGHUP)
        assert server.says("users not reloaded")
        assert boss.text("getpid").line() == b"OK %d\n" % server.pid


def test_account_of_this_machine(tmp_path: Path) -> None:
    """By a socket file the system tells who connects."""
    users = tmp_path / "users.toml"
    users.write_text('[superuser]\nmay = ["read"]\naccounts = ["root"]\n')
    path = tmp_path / "periodic.sock"
    listen = f"--listen=periodic+unix://{path}?may=none"
    with serving.serve("--store", "memory", "--users-file", str(users), listen) as server:
        with geartrain.Client(server.url, patience=1) as client, pytest.raises(geartrain.ClientError):
            client.submit("anything", background=True)
        assert server.says("who=superuser")
