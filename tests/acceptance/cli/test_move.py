"""`geartrain move` from Debian's gearmand, and from a server of ours, to a server of ours.

The tests share the servers, so each has functions of its own.
"""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import run
from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until

LISTEN = ("--store", "memory", "--listen", "gearman://127.0.0.1:0")
PRIORITIES = (Kind.SUBMIT_JOB_LOW_BG, Kind.SUBMIT_JOB_HIGH_BG, Kind.SUBMIT_JOB_BG)


@pytest.fixture(scope="module", params=[pytest.param("gearmand", marks=pytest.mark.peer("gearmand")), "geartrain"])
def old(request: pytest.FixtureRequest) -> Iterator[serving.ServerProcess]:
    with serving.gearmand() if request.param == "gearmand" else serving.serve(*LISTEN) as server:
        yield server


@pytest.fixture(scope="module")
def new() -> Iterator[serving.ServerProcess]:
    with serving.serve(*LISTEN) as server:
        yield server


def test_background_jobs(old: serving.ServerProcess, new: serving.ServerProcess) -> None:
    """They keep function, payload, unique ID and priority; what is not due stays."""
    with Peer(old.port) as client:
        for number in range(600):
            kind = PRIORITIES[number % 3]
            client.submit(b"resize", b"u%d" % number, b"pay\0load%d" % number, kind=kind)
        client.submit(b"mail", b"", b"", kind=Kind.SUBMIT_JOB_BG)
        client.submit(b"other", b"", b"stays", kind=Kind.SUBMIT_JOB_BG)
        client.send(Kind.SUBMIT_JOB_EPOCH, b"mail", b"later", b"%d" % (time.time() + 1000), b"later")
        client.body(Kind.JOB_CREATED)
    summary = run("", "move", old.url, new.url, "resize", "mail", "--json").json
    assert summary == {"moved": 601, "passed_on": 0, "left": 1, "with_reducer": 0}
    with Peer(old.port) as admin:
        left = {name: total for name, total, *_ in admin.listing("status")}
    assert (left[b"resize"], left[b"mail"], left[b"other"]) == (b"0", b"1", b"1")
    with Peer(new.port) as admin:
        waiting = {name: counts for name, *counts, _ in admin.listing("prioritystatus")}
    assert (waiting[b"resize"], waiting[b"mail"]) == ([b"200", b"200", b"200"], [b"0", b"1", b"0"])
    assert b"other" not in waiting
    with Peer(new.port).register(b"resize") as worker:
        taken = [worker.grab(Kind.GRAB_JOB_UNIQ) for _ in range(600)]
        for job in taken:
            worker.send(Kind.WORK_COMPLETE, job.handle, b"")
    with Peer(new.port).register(b"mail") as worker:
        worker.send(Kind.WORK_COMPLETE, worker.grab().handle, b"")
    numbers = [int(job.unique[1:]) for job in taken]
    assert [job.data for job in taken] == [b"pay\0load%d" % number for number in numbers]
    by_priority = [[n for n in range(600) if PRIORITIES[n % 3] == kind] for kind in sorted(PRIORITIES, key=_rank)]
    assert numbers == by_priority[0] + by_priority[1] + by_priority[2]


def _rank(kind: Kind) -> int:
    return (Kind.SUBMIT_JOB_HIGH_BG, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_LOW_BG).index(kind)


def test_foreground_jobs_are_passed_on(old: serving.ServerProcess, new: serving.ServerProcess) -> None:
    """A client that waits at the old server gets what a worker of the new one says."""
    with Peer(old.port) as client, Peer(old.port) as unlucky, Peer(new.port).register(b"convert") as worker:
        handle = client.submit(b"convert", b"a", b"first")
        failing = unlucky.submit(b"convert", b"b", b"second")
        moving = threading.Thread(target=run, args=("", "move", old.url, new.url, "convert"))
        moving.start()
        try:
            jobs = {job.data: job.handle for job in (worker.grab(), worker.grab())}
            worker.send(Kind.WORK_STATUS, jobs[b"first"], b"1", b"2")
            worker.send(Kind.WORK_DATA, jobs[b"first"], b"part")
            worker.send(Kind.WORK_COMPLETE, jobs[b"first"], b"whole")
            worker.send(Kind.WORK_FAIL, jobs[b"second"])
            client.expect(Kind.WORK_STATUS, handle, b"1", b"2")
            client.expect(Kind.WORK_DATA, handle, b"part")
            client.expect(Kind.WORK_COMPLETE, handle, b"whole")
            unlucky.expect(Kind.WORK_FAIL, failing)
        finally:
            moving.join()


def test_jobs_that_are_refused_stay(old: serving.ServerProcess, new: serving.ServerProcess) -> None:
    with Peer(new.port) as admin:
        assert admin.text("create function limited").line() == b"OK\r\n"
        assert admin.text("maxqueue limited 2").line() == b"OK\r\n"
    with Peer(old.port) as client:
        for number in range(5):
            client.submit(b"limited", b"u%d" % number, b"%d" % number, kind=Kind.SUBMIT_JOB_BG)
    answer = run("", "move", old.url, new.url, "limited", code=1)
    assert "Job queue is full" in answer.err
    with Peer(old.port) as there, Peer(new.port) as here:
        assert _status(here, b"limited")[0] == b"2"
        until(lambda: _status(there, b"limited")[:2] == [b"3", b"0"], "the others are back in the queue")
    with Peer(new.port).register(b"limited") as worker:
        for _ in range(2):
            worker.send(Kind.WORK_COMPLETE, worker.grab().handle, b"")


def _status(peer: Peer, function: bytes) -> list[bytes]:
    return next(rest for name, *rest in peer.listing("status") if name == function)


def test_following(old: serving.ServerProcess, new: serving.ServerProcess) -> None:
    command = [str(serving.installed_command()), "move", "--follow", old.url, new.url, "late"]
    mover = process.Process(command, old.home)
    try:
        with Peer(old.port) as client, Peer(new.port).register(b"late") as worker:
            for payload in (b"1", b"2"):
                client.submit(b"late", b"", payload, kind=Kind.SUBMIT_JOB_BG)
                job = worker.grab()
                assert job.data == payload
                worker.send(Kind.WORK_COMPLETE, job.handle, b"")
        mover.process.send_signal(signal.SIGINT)
        assert mover.wait() == 0
        assert mover.lines[0] == f"moved 2 jobs from {old.url} to {new.url}"
    finally:
        mover.kill()


def test_server_is_not_moved_to_itself(new: serving.ServerProcess) -> None:
    other_name = new.url.replace("127.0.0.1", "localhost")
    assert "are the same server" in run("", "move", new.url, other_name, code=1).err


def test_each_server_gets_its_own_token(old: serving.ServerProcess, tmp_path: Path) -> None:
    """gearmand would refuse the token of the new server."""
    token, users = tmp_path / "token", tmp_path / "users.toml"
    token.write_bytes(run("", "token", "create", "mover", "--may", "submit", "--users-file", users).out)
    guarded = ("--store", "memory", "--users-file", str(users), "--listen", "gearman://127.0.0.1:0?may=none")
    with serving.serve(*guarded) as new, Peer(old.port) as client:
        client.submit(b"guarded", b"", b"1", kind=Kind.SUBMIT_JOB_BG)
        answer = run("", "move", old.url, new.url, "guarded", "--token-file", token)
        assert answer.text.startswith("moved 1 job from")
