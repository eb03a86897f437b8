"""Every case of the document's "Task summary", with applications and workers over real sockets.

And in the middle of all of it the server is killed: async jobs and their results are there afterwards.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import serving
from tests.support.danga_peer import HANDLE, INCOMPLETE, THROW_AWAY, Completion, Job, Kind, Peer, creation


class Task(NamedTuple):
    """One row of the summary, and what its worker says to it here."""

    name: bytes
    key: bytes
    type: int
    args: bytes
    code: int
    result: bytes


TASKS = [
    Task(b"mail", b"", HANDLE, b"From: brad\0To: whitaker", 0, b"250 queued"),
    Task(b"resize", b"17-4-320-200", HANDLE, b"\x04\x06storable\0\xff", 0, b"\xff\xd8\xff\xe0" * 5000),
    Task(b"thumbgen", b"17-23-100-100", HANDLE, b"picture 23", 3, b"not a picture"),
    Task(b"pay_updateaccounts", b"", HANDLE, b"--dry-run\0--verbose", 0, b""),
    Task(b"dirty", b"friends-17", HANDLE, b"", 0, b"flushed"),
    Task(b"weblogscom", b"17", THROW_AWAY, b"", 0, b"pinged"),
    Task(b"rss", b"17", HANDLE, b"", 28, b"timed out"),
    Task(b"captcha", b"1", THROW_AWAY, b"", 0, b"500 made"),
    Task(b"bday", b"2005-03-30", HANDLE, b"", 0, b"12 mails"),
]
NAMES = [task.name for task in TASKS]
BY_NAME = {task.name: task for task in TASKS}


def expected(task: Task) -> Completion:
    return Completion(1, task.code, task.result if task.type == HANDLE else b"")


def serve(store: Path) -> AbstractContextManager[serving.ServerProcess]:
    return serving.serve("--listen", "danga://127.0.0.1:0", "--store", f"sqlite://{store}")


def create_all(application: Peer) -> dict[bytes, bytes]:
    """Create every task; those with a key twice, for they are duplicates."""
    handles = {task.name: application.create(*task[:2], task.args, task.type) for task in TASKS}
    for task in TASKS:
        again = application.create(task.name, task.key, b"a duplicate", task.type) if task.key else b""
        assert again in (b"", handles[task.name])
    return handles


def work(worker: Peer, count: int) -> list[Job]:
    """Do so many jobs as a worker of the document does."""
    done = []
    for _ in range(count):
        job = worker.grab()
        task = BY_NAME[job.name]
        worker.announce(1, 2, 1).finish(task.result, task.code)
        done.append(job)
    return done


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


def test_every_task(store: Path) -> None:
    with serve(store) as server, Peer(server.port) as application, Peer(server.port) as worker:
        handles = create_all(application)
        done = work(worker.connect(*NAMES), len(TASKS))
        assert sorted(done) == sorted((task.name, task.args) for task in TASKS)
        assert worker.take() is None
        assert {name: application.result(handle) for name, handle in handles.items()} == {
            task.name: expected(task) for task in TASKS
        }


@pytest.mark.parametrize("done_before", [0, 4, len(TASKS)])
def test_a_kill_in_the_middle_of_it(store: Path, done_before: int) -> None:
    with serve(store) as server, Peer(server.port) as application, Peer(server.port) as worker:
        handles = create_all(application)
        worker.connect(*NAMES)
        done = {job.name for job in work(worker, done_before)}
        assert {application.result(handles[name]) for name in done} == {expected(BY_NAME[name]) for name in done}
        if done_before < len(TASKS):
            assert worker.take() is not None  # and dies with it
        server.kill()
    with serve(store) as server, Peer(server.port) as application, Peer(server.port) as worker:
        for name, handle in handles.items():
            assert application.completion(handle) == (expected(BY_NAME[name]) if name in done else INCOMPLETE)
        left = work(worker.connect(*NAMES), len(TASKS) - done_before)
        assert sorted([*done, *(job.name for job in left)]) == sorted(NAMES)
        assert {name: application.result(handle) for name, handle in handles.items()} == {
            task.name: expected(task) for task in TASKS
        }
        server.kill()
    with serve(store) as server, Peer(server.port) as application:
        for task in TASKS:
            assert application.completion(handles[task.name]) == expected(task)


def test_duplicate_keys_survive_a_kill(store: Path) -> None:
    with serve(store) as server, Peer(server.port) as application:
        handle = application.create(b"bday", b"2005-03-30")
        thrown = application.create(b"captcha", b"1", type=THROW_AWAY)
        assert application.create(b"captcha", b"1", type=HANDLE) == thrown
        server.kill()
    with serve(store) as server, Peer(server.port) as application, Peer(server.port) as worker:
        assert application.create(b"bday", b"2005-03-30") == handle
        worker.connect(b"bday", b"captcha")
        work(worker, 2)
        assert worker.take() is None
        assert application.result(thrown) == (1, 0, b"500 made")  # the second creator wanted it


def test_results_survive_a_stop_in_good_order(store: Path) -> None:
    with serve(store) as server, Peer(server.port) as application, Peer(server.port) as worker:
        handle = application.create(b"rss", b"17")
        work(worker.connect(b"rss"), 1)
        assert application.result(handle) == (1, 28, b"timed out")
    with serve(store) as server, Peer(server.port) as application:
        assert application.completion(handle) == (1, 28, b"timed out")


def test_every_handle_that_was_told_survives_a_kill_under_load(store: Path) -> None:
    wanted = 5000
    with serve(store) as server, Peer(server.port) as application:
        application.raw(b"".join(creation(b"mail", args=b"%d" % number) for number in range(wanted)))
        told = [application.body(Kind.JOB_CREATE_RES) for _ in range(wanted // 3)]
        server.kill()
    with serve(store) as server, Peer(server.port) as application, Peer(server.port) as worker:
        worker.connect(b"mail")
        done: set[bytes] = set()
        while (job := worker.take()) is not None:
            done.add(job.args)
            worker.finish(b"sent " + job.args)
        assert done >= {b"%d" % number for number in range(len(told))}
        for number, handle in enumerate(told):
            assert application.result(handle) == (1, 0, b"sent %d" % number)
