"""kill -9 of `geartrain move` and of the new server in the middle: no job is lost between the two servers."""

import os
import signal
from pathlib import Path

import pytest

from tests.crash.conftest import Start
from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until

FUNCTION = b"resize"
JOBS = 3000


@pytest.mark.peer("gearmand")
def test_no_job_is_lost(start: Start, tmp_path: Path) -> None:
    with serving.gearmand() as old:
        with Peer(old.port) as client:
            for number in range(JOBS):
                client.send(Kind.SUBMIT_JOB_BG, FUNCTION, b"u%d" % number, b"%d" % number)
            for _ in range(JOBS):
                client.body(Kind.JOB_CREATED)
        with start() as new:
            _kill_in_the_middle(old, new, tmp_path)
        with start() as new:
            here, there = _payloads(new.port), _payloads(old.port)
    assert here, "some were moved"
    assert here | there == {b"%d" % number for number in range(JOBS)}


def _kill_in_the_middle(old: serving.ServerProcess, new: serving.ServerProcess, home: Path) -> None:
    """Freeze the new server when it has some of the jobs, and kill both when the command waits with others in hand."""
    mover = process.Process([str(serving.installed_command()), "move", old.url, new.url], home)
    try:
        with Peer(old.port) as admin:  # which is told of a job after the new server has acknowledged it
            until(lambda: _count(admin, 1) < JOBS, "the first job has moved")
        os.kill(new.pid, signal.SIGSTOP)
        with Peer(old.port) as admin:
            until(lambda: _count(admin, 2) > 0 or mover.process.poll() is not None, "the command waits")
    finally:
        mover.kill()
        new.kill()


def _count(admin: Peer, column: int) -> int:
    return sum(int(row[column]) for row in admin.listing("status"))


def _payloads(port: int) -> set[bytes]:
    """The payloads of all jobs, once the server has taken back those of the worker that was killed."""
    with Peer(port) as admin:
        until(lambda: not _count(admin, 2), "no job runs")
    payloads = set()
    with Peer(port).register(FUNCTION) as worker:
        while (job := worker.take()) is not None:
            payloads.add(job.data)
    return payloads
