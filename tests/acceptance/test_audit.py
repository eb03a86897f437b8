"""The audit log of a running server: who did what, by every protocol, allowed and refused."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import geartrain
from geartrain import audit
from geartrain.audit import AuditEntry
from geartrain.client import control
from geartrain.errors import AdminError, GeartrainError
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import PATIENCE
from tests.support.periodic_peer import Command, job
from tests.support.periodic_peer import Peer as PeriodicPeer
from tests.support.protocol_ends import async_test, connected_worker

DOORS = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")
TOKEN = "gt_a-token-for-the-tests-of-the-audit-log"
SECRET = b"a payload that nobody may read"


def listens(*schemes: str, may: str = "") -> list[str]:
    return [f"--listen={scheme}://{serving.HOST}:0{may}" for scheme in schemes]


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.toml"
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    path.write_text(f'[ops]\nmay = ["admin"]\ntokens = [{{ digest = "sha256:{digest}" }}]\n')
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@contextlib.contextmanager
def audited(file: Path, *arguments: str) -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--audit-file", str(file), *arguments) as server:
        yield server


def entries(file: Path, verb: str = "") -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [entry for entry in lines if not verb or entry["verb"] == verb]


@pytest.mark.parametrize("door", DOORS)
@async_test
async def test_verb_by_every_protocol(file: Path, door: str) -> None:
    with audited(file, *listens(door)) as server:
        async with geartrain.AsyncClient(server.url) as client:
            await control.ask(client, "pause", function="mail")
            schedule = {"name": "nightly", "expression": "0 3 * * *", "function": "report"}
            await control.ask(client, "cron_set", **schedule, payload=SECRET.decode())
            with pytest.raises(AdminError):
                await control.ask(client, "cancel", handle="H:nowhere:1")
            await control.ask(client, "functions")
    assert [(entry["verb"], entry.get("outcome", "ok")) for entry in entries(file)] == [
        ("start", "ok"), ("pause", "ok"), ("cron_set", "ok"), ("cancel", "failed"), ("stop", "ok"),
    ]  # fmt: skip
    pause, cron_set = entries(file)[1:3]
    assert pause["arguments"] == {"function": "mail"}
    assert (pause["who"], pause["protocol"]) == ("anonymous", door.partition("+")[0])
    assert pause["peer"].startswith(f"{serving.HOST}:")
    assert cron_set["arguments"]["name"] == "nightly"
    assert SECRET not in file.read_bytes()


async def refusal(operator: geartrain.AsyncClient, why: str) -> dict[str, Any]:
    """The first entry about a refusal for this reason, once there is one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            page = await control.ask(operator, "audit", refused=True)
            for entry in page["items"]:
                if why in entry["why"] or "scope" in entry["why"]:
                    return dict(entry)


@pytest.mark.parametrize("door", DOORS)
@async_test
async def test_refusals_by_every_protocol(file: Path, door: str) -> None:
    """Whoever may only work is refused to submit, and whoever may only submit to work."""
    url = listens(door, may="?may=work") + listens(door, may="?may=submit") + listens("gearman")
    with audited(file, *url) as server:
        async with geartrain.AsyncClient(server.urls[2]) as operator:
            async with geartrain.AsyncClient(server.urls[0], patience=1) as client:
                with contextlib.suppress(GeartrainError):
                    await client.submit("mail", SECRET, background=client.capabilities.background)
                submit = await refusal(operator, "no right submit")
            work = None
            with contextlib.suppress(GeartrainError, OSError):
                async with connected_worker(server.urls[1], b"mail"):
                    work = await refusal(operator, "no right work")
            work = work or await refusal(operator, "no right work")
        for entry in (submit, work):
            assert entry["protocol"] == door.partition("+")[0]
            assert entry["who"].startswith("anonymous")
    assert SECRET not in file.read_bytes()


def test_commands_of_gearman(file: Path) -> None:
    with audited(file, *listens("gearman")) as server, Peer(server.port) as peer:
        peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", SECRET)
        handle = peer.packet()[1].decode()
        for line in ("maxqueue mail 5", f"cancel job {handle}", "create function new", "drop function new"):
            assert peer.text(line).line() == b"OK\r\n"
        assert peer.text("drop function nowhere").line().startswith(b"ERR ")
        peer.text("status")
        assert peer.text("shutdown").line()
        server.wait()
    found = [(entry["verb"], entry.get("outcome", "ok")) for entry in entries(file)]
    changes = [("maxqueue", "ok"), ("cancel", "ok"), ("create", "ok"), ("drop", "ok"), ("drop", "failed")]
    assert found == [("start", "ok"), *changes, ("shutdown", "ok"), ("stop", "ok")]
    assert entries(file, "cancel")[0]["arguments"] == {"words": ["job", handle]}
    assert SECRET not in file.read_bytes()


def test_commands_of_redis(file: Path) -> None:
    with audited(file, *listens("gearmonkey")) as server, socket.create_connection((serving.HOST, server.port)) as peer:
        peer.sendall(b"DEL job:mail:1\r\n")
        assert peer.recv(100) == b":0\r\n"
    assert [entry["arguments"] for entry in entries(file, "del")] == [{"words": ["job:mail:1"]}]


def test_commands_of_periodic(file: Path) -> None:
    with audited(file, *listens("periodic")) as server, PeriodicPeer(server.port) as peer:
        peer.succeed(Command.SUBMIT_JOB, job(b"mail", b"1", SECRET))
        peer.succeed(Command.DROP_FUNC, b"\x04mail")
        peer.send(Command.SHUTDOWN)
        server.wait()
    assert [entry["verb"] for entry in entries(file)] == ["start", "drop_func", "shutdown", "stop"]
    assert entries(file, "drop_func")[0]["arguments"] == {"words": ["mail"]}
    assert SECRET not in file.read_bytes()


def test_logins(file: Path, users: Path) -> None:
    closed = listens("gearman", "gearmonkey", "http", may="?may=none")
    with audited(file, "--users-file", str(users), *closed) as server:
        with Peer(server.port) as peer:
            assert peer.text("auth nonsense-of-a-token").line().startswith(b"ERR ")
            assert peer.text(f"auth {TOKEN}").line() == b"OK\r\n"
            assert peer.text("maxqueue mail 5").line() == b"OK\r\n"
        http = HttpPeer(server.urls[2], TOKEN)
        assert http.call("POST", "/functions/mail/pause").status == 200
        assert HttpPeer(server.urls[2], "nonsense-of-a-token").call("GET", "/functions").status == 401
        page = http.get("/audit?verb=login")["items"]
    assert [(entry["protocol"], entry["who"], entry.get("outcome", "ok")) for entry in reversed(page)][:4] == [
        ("gearman", "anonymous at gearman", "refused"),
        ("gearman", "ops", "ok"),
        ("http", "ops", "ok"),
        ("http", "anonymous", "refused"),
    ]
    assert [entries(file, verb)[0]["who"] for verb in ("maxqueue", "pause")] == ["ops", "ops"]
    text = file.read_text()
    assert TOKEN not in text
    assert "nonsense" not in text


def test_only_admins_read_it(file: Path) -> None:
    with audited(file, *listens("http", may="?may=read"), *listens("http")) as server:
        assert HttpPeer(server.urls[0]).call("GET", "/audit").status == 403
        refused = HttpPeer(server.urls[1]).get("/audit?refused=true")["items"]
        assert [(entry["verb"], entry["arguments"]["path"]) for entry in refused] == [("audit", "/api/v1/audit")]


def test_flood_of_refusals_is_counted(file: Path) -> None:
    """A peer cannot fill the disk: a few entries are written, and the number of the others."""
    with audited(file, *listens("gearman", may="?may=work")) as server, Peer(server.port) as peer:
        for _ in range(2000):
            peer.send(Kind.SUBMIT_JOB_BG, b"mail", b"", SECRET)
        for _ in range(2000):
            peer.error()
    refused = [entry for entry in entries(file) if entry.get("outcome") == "refused"]
    assert len(refused) == 21
    assert refused[-1]["left_out"] == 1980
    assert refused[-1]["peer"] == serving.HOST


def test_file_is_reopened_after_rotation(file: Path) -> None:
    with audited(file, *listens("gearman")) as server, Peer(server.port) as peer:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert peer.text("maxqueue before 1").line() == b"OK\r\n"
        old = file.rename(file.with_suffix(".1"))
        server.signal(signal.SIGHUP)
        assert server.says("audit file reopened")
        assert peer.text("maxqueue after 1").line() == b"OK\r\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [entry["verb"] for entry in entries(old)] == ["start", "maxqueue"]
    assert [entry["verb"] for entry in entries(file)] == ["reload", "maxqueue", "stop"]
    assert entries(file, "maxqueue")[0]["arguments"] == {"words": ["after", "1"]}


def test_killed_server_leaves_what_it_wrote(file: Path) -> None:
    with audited(file, *listens("gearman", "http")) as server, Peer(server.port) as peer:
        assert peer.text("maxqueue mail 1").line() == b"OK\r\n"
        assert len(HttpPeer(server.urls[1]).get("/audit")["items"]) == 2  # which waits until they are written
        server.kill()
    file.write_bytes(file.read_bytes() + b'{"time":"2026-11-16T2')  # the line that a crash cut
    with audited(file, *listens("http")) as server:
        verbs = [entry["verb"] for entry in HttpPeer(server.url).get("/audit")["items"]]
        assert verbs == ["start", "maxqueue", "start"]


def test_lines_of_another_process_do_not_mix(file: Path) -> None:
    with audited(file, *listens("gearman")) as server, Peer(server.port) as peer:
        for number in range(200):
            peer.text(f"maxqueue f{number} 1")
            audit.append(str(file), AuditEntry(audit.now(), "token create", who="root", arguments={"name": "x" * 200}))
        for _ in range(200):
            assert peer.line() == b"OK\r\n"
    assert len(entries(file, "maxqueue")) == len(entries(file, "token create")) == 200


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_disk_is_logged_and_the_server_lives() -> None:
    with audited(Path("/dev/full"), *listens("gearman")) as server, Peer(server.port) as peer:
        assert peer.text("maxqueue mail 1").line() == b"OK\r\n"
        assert server.says("audit file cannot be written")
        assert peer.text("maxqueue mail 2").line() == b"OK\r\n"
        assert server.stderr.count("audit file cannot be written") == 1


def test_newest_entries_are_in_memory_without_a_file() -> None:
    with serving.serve("--store", "memory", *listens("http")) as server:
        peer = HttpPeer(server.url)
        for number in range(5):
            assert peer.call("POST", f"/functions/f{number}/pause").status == 200
        first = peer.get("/audit?limit=3")
        assert [entry["arguments"]["function"] for entry in first["items"]] == ["f4", "f3", "f2"]
        rest = peer.get(f"/audit?limit=3&after={first['after']}")
        assert [entry["verb"] for entry in rest["items"]] == ["pause", "pause", "start"]
