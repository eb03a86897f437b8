"""Names with control characters at every door, and unique keys of any bytes between protocols."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.acceptance.test_limits import Peers, port_of, serve
from tests.support import danga_peer, gearman_peer, memodb_peer, periodic_peer, process, serving
from tests.support.gearman_peer import Kind

BAD = [
    pytest.param(b"a\nfake\t1\t1\t1", id="LF"),
    pytest.param(b"a\x1b[2J", id="ESC"),
    pytest.param(b"a\x7f", id="DEL"),
]
WITH_NUL = [*BAD, pytest.param(b"a\0b", id="NUL")]
# A key that Gearman cannot carry, and what its peers get instead.
KEY, ESCAPED = b"100%\0\n", b"100%25%00%0A"


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serve() as server:
        yield server


@pytest.fixture
def peers(server: serving.ServerProcess) -> Iterator[Peers]:
    with contextlib.ExitStack() as stack:
        yield Peers(server, stack)
        admin = peers_admin(server, stack)
        for command in ("status", "prioritystatus", "workers"):
            admin.text(command)
            assert not [line for line in admin.block() if b"fake" in line or b"a\x1b" in line]


def peers_admin(server: serving.ServerProcess, stack: contextlib.ExitStack) -> gearman_peer.Peer:
    return stack.enter_context(gearman_peer.Peer(port_of(server, "gearman")))


@pytest.mark.parametrize("name", WITH_NUL)
def test_gearman(peers: Peers, name: bytes) -> None:
    peer = peers.gearman()
    for kind in (Kind.CAN_DO, Kind.SET_CLIENT_ID):
        peer.send(kind, name)
        assert peer.error()[0] == "INVALID_NAME"
    if b"\0" not in name:
        peer.send(Kind.SUBMIT_JOB_BG, name, b"", b"x")
        assert peer.error()[0] == "INVALID_NAME"
        peer.send(Kind.CAN_DO_TIMEOUT, name, b"1000")
        assert peer.error()[0] == "INVALID_NAME"
    peer.silence()


def test_gearmans_text_commands(peers: Peers) -> None:
    peer = peers.gearman()
    assert peer.text(b"create function a\x1b[2J").line().startswith(b"ERR INVALID_NAME ")
    peer.silence()


@pytest.mark.parametrize("name", WITH_NUL)
def test_danga(peers: Peers, name: bytes) -> None:
    if b"\0" not in name:
        assert peers.danga().create(name) == b""
        peers.danga().send(danga_peer.Kind.WORKER_CONNECT, name).closed()


@pytest.mark.parametrize("name", WITH_NUL)
def test_periodic(peers: Peers, name: bytes) -> None:
    client, worker = peers.periodic(), peers.periodic(periodic_peer.WORKER)
    command, unknown = periodic_peer.Command, periodic_peer.Command.UNKNOWN
    client.expect(client.send(command.SUBMIT_JOB, periodic_peer.job(name, b"n")), unknown)
    worker.expect(worker.send(command.CAN_DO, periodic_peer.text(name)), unknown)


@pytest.mark.parametrize("name", WITH_NUL)
def test_memodb(peers: Peers, name: bytes) -> None:
    worker, client = peers.memodb(), peers.memodb()
    assert worker.reply(worker.ready(name.decode())).kind == memodb_peer.DISCONNECT
    client.job(name.decode())
    client.closed()


@pytest.mark.parametrize("name", WITH_NUL)
def test_gearmonkey(peers: Peers, name: bytes) -> None:
    connection = peers.redis()
    with pytest.raises(redis.ResponseError, match="control characters"):
        connection.rpop(b"queue:%b:normal" % name)
    with pytest.raises(redis.ResponseError, match="special characters"):
        connection.client_setname(name.decode())
    assert connection.ping()


@pytest.mark.parametrize("name", WITH_NUL)
def test_http(peers: Peers, name: bytes) -> None:
    http = peers.http()
    bad = name.decode()
    assert http.call("POST", "/jobs", {"function": bad}).json["kind"] == "bad-request"
    assert http.call("POST", "/workers", {"functions": [bad]}).json["kind"] == "bad-request"
    refused = http.call("POST", "/workers", {"functions": ["f"], "name": bad})
    assert (refused.status, "control characters" in refused.json["detail"]) == (400, True)


def test_a_key_with_a_nul_does_not_shift_into_the_payload(peers: Peers) -> None:
    http, worker, admin = peers.http(), peers.gearman(), peers.gearman()
    handle = http.call("POST", "/jobs", {"function": "key", "payload": "data", "unique": KEY.decode()}).json["handle"]
    admin.text("show unique jobs")
    assert ESCAPED in admin.block()
    admin.send(Kind.GET_STATUS_UNIQUE, ESCAPED)
    admin.expect(Kind.STATUS_RES_UNIQUE, ESCAPED, b"1", b"0", b"0", b"0", b"0")
    job = worker.register(b"key").grab(Kind.GRAB_JOB_UNIQ)
    assert (job.handle.decode(), job.function, job.unique, job.data) == (handle, b"key", ESCAPED, b"data")
    worker.send(Kind.WORK_COMPLETE, job.handle, b"")


def test_a_key_without_a_nul_reaches_workers_as_it_is(peers: Peers) -> None:
    client, worker, admin = peers.gearman(), peers.gearman(), peers.gearman()
    client.submit(b"raw", b"100%\n\x80%00", b"data", kind=Kind.SUBMIT_JOB_BG)
    admin.text("show unique jobs")
    assert b"100%25%0A\x80%2500" in admin.block()
    job = worker.register(b"raw").grab(Kind.GRAB_JOB_UNIQ)
    assert (job.unique, job.data) == (b"100%\n\x80%00", b"data")
    worker.send(Kind.WORK_COMPLETE, job.handle, b"")


def test_a_key_with_a_nul_in_the_environment(server: serving.ServerProcess, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{port_of(server, 'http')}"
    with contextlib.ExitStack() as stack:
        command = ["work", "env", "--server", url, "--", "sh", "-c", 'echo "$GEARTRAIN_UNIQUE"']
        worker = process.Process([str(serving.installed_command()), *command], tmp_path)
        stack.callback(worker.kill)
        job = {"function": "env", "unique": KEY.decode(), "background": False, "wait": 60}
        assert Peers(server, stack).http().call("POST", "/jobs", job).json["result"] == ESCAPED.decode() + "\n"


def test_names_of_an_older_store_are_loaded_and_listed_escaped(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/jobs.db"
    listen = ("--listen", "gearman://127.0.0.1:0")
    with serving.serve("--store", store, *listen) as server, gearman_peer.Peer(server.port) as client:
        client.submit(b"odd-name", kind=Kind.SUBMIT_JOB_BG)
    dump = run(tmp_path, "dump", "--store", store)
    changed = dump.replace("odd-name", json.dumps("odd\nfake\t1\t1\t1")[1:-1])
    assert changed != dump
    other = f"sqlite://{tmp_path}/other.db"
    run(tmp_path, "load", "-", "--store", other, text=changed)
    with serving.serve("--store", other, *listen) as server, gearman_peer.Peer(server.port) as admin:
        admin.text("status")
        assert admin.block() == [b"odd%0Afake%091%091%091\t1\t0\t0"]


def run(folder: Path, *words: str, text: str = "") -> str:
    done = serving.run_command(folder, *words, stdin=text)
    assert done.returncode == 0, done.stderr
    return done.stdout
