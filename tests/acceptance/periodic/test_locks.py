"""Locks: how many jobs run under a name at once. The document does not have them."""

import time
from collections.abc import Callable

import pytest

from tests.acceptance.periodic.conftest import Start
from tests.support.peer import until
from tests.support.periodic_peer import WORKER, Command, Dial, Dialect, Job, Peer, text

LOCK = b"lock"


@pytest.fixture
def client(dial: Dial) -> Peer:
    return dial(Dialect.TODAY)


@pytest.fixture
def worker(dial: Dial, function: bytes) -> Peer:
    return dial(Dialect.TODAY, WORKER).offer(function)


@pytest.fixture
def taken(client: Peer, worker: Peer, function: bytes) -> list[Job]:
    """Four jobs in the order in which they were submitted, all with the worker."""
    for number in range(4):
        client.submit(function, b"%d" % number)
    return [worker.take() for _ in range(4)]


def lock_of(function: bytes) -> bytes:
    return b"lock of " + function


def locked(client: Peer, function: bytes) -> int:
    return client.status()[function][3]


def test_one_at_a_time(client: Peer, worker: Peer, taken: list[Job], function: bytes) -> None:
    lock = lock_of(function)
    assert [worker.acquire(job, lock) for job in taken[:3]] == [True, False, False]
    assert client.status()[function][1:4] == [4, 2, 2]
    grab = worker.grab()
    worker.silence()
    worker.done(taken[0])
    again = worker.assigned(grab)
    assert again.name == taken[1].name, "who has waited longest"
    worker.grab()
    worker.silence()
    assert worker.acquire(again, lock)
    assert not worker.acquire(taken[3], lock)


def test_two_at_a_time(client: Peer, worker: Peer, taken: list[Job], function: bytes) -> None:
    lock = lock_of(function)
    assert [worker.acquire(job, lock, 2) for job in taken] == [True, True, False, False]
    assert locked(client, function) == 2
    worker.done(taken[1])
    assert worker.acquire(worker.take(), lock, 2)
    assert locked(client, function) == 1


def test_the_largest_limit_counts(worker: Peer, taken: list[Job], function: bytes) -> None:
    lock = lock_of(function)
    assert worker.acquire(taken[0], lock, 1)
    assert worker.acquire(taken[1], lock, 2)
    assert not worker.acquire(taken[2], lock, 1)


@pytest.mark.parametrize("limit", [0, -1, -32768])
def test_a_limit_of_nobody_is_one(worker: Peer, taken: list[Job], function: bytes, limit: int) -> None:
    lock = lock_of(function)
    assert [worker.acquire(job, lock, limit) for job in taken[:2]] == [True, False]


def _lost(worker: Peer, job: Job, lock: bytes) -> None:
    worker.close()


def _removed(worker: Peer, job: Job, lock: bytes) -> None:
    worker.succeed(Command.REMOVE_JOB, text(job.function) + text(job.name))


ENDS: dict[str, Callable[[Peer, Job, bytes], None]] = {
    "done": lambda worker, job, lock: worker.done(job),
    "fail": lambda worker, job, lock: worker.fail(job),
    "later": lambda worker, job, lock: worker.later(job, 1000),
    "release": lambda worker, job, lock: worker.release(job, lock),
    "unassigned": lambda worker, job, lock: worker.send(Command.JOB_UNASSIGNED, message_id=job.message_id) and None,
    "cant do": lambda worker, job, lock: worker.confirmed(Command.CANT_DO, text(job.function)) and None,
    "lost worker": _lost,
    "removed": _removed,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_what_frees_a_lock(dial: Dial, client: Peer, function: bytes, end: Callable[[Peer, Job, bytes], None]) -> None:
    """The holder and the next one are of different functions, so that the next is the only job of its own."""
    lock, other = lock_of(function), function + b"-other"
    holder, waiter = (dial(Dialect.TODAY, WORKER).offer(name) for name in (function, other))
    client.submit(function, b"holder")
    client.submit(other, b"waiter")
    held = holder.take()
    assert holder.acquire(held, lock)
    assert not waiter.acquire(waiter.take(), lock)
    grab = waiter.grab()
    waiter.silence()
    end(holder, held, lock)
    again = waiter.assigned(grab)
    assert (again.name, locked(client, other)) == (b"waiter", 0)
    assert waiter.acquire(again, lock)


def test_a_job_that_waits_gives_up_its_other_locks(worker: Peer, taken: list[Job], function: bytes) -> None:
    """Two jobs that hold one of two locks each and want the other cannot block each other."""
    one, two = function + b"-1", function + b"-2"
    assert worker.acquire(taken[0], one)
    assert worker.acquire(taken[1], two)
    assert not worker.acquire(taken[0], two)
    assert worker.acquire(taken[1], one)
    worker.done(taken[1])
    again = worker.take()
    assert again.name == taken[0].name
    assert worker.acquire(again, one)
    assert worker.acquire(again, two)


def test_a_job_that_waits_can_be_removed_and_replaced(
    client: Peer, worker: Peer, taken: list[Job], function: bytes
) -> None:
    lock = lock_of(function)
    assert [worker.acquire(job, lock) for job in taken] == [True, False, False, False]
    client.succeed(Command.REMOVE_JOB, text(function) + text(taken[1].name))
    client.submit(function, taken[2].name, b"replaced", 4_000_000_000)
    assert locked(client, function) == 1
    worker.done(taken[0])
    assert worker.take().name == taken[3].name
    worker.grab()
    worker.silence()
    assert client.status()[function][-1] == 4_000_000_000


def test_the_lock_timeout_governs(start: Start) -> None:
    """A job that waits comes back by itself; what it does then is not undone when the lock is freed later."""
    with start() as server, Peer(server.port, Dialect.TODAY, WORKER) as worker:
        worker.set(b"lock-timeout", 1)
        worker.offer(b"f")
        for name in (b"holder", b"waiter"):
            worker.submit(b"f", name)
        holder, waiter = worker.take(), worker.take()
        assert worker.acquire(holder, LOCK)
        assert not worker.acquire(waiter, LOCK)
        assert not worker.acquire(worker.take(), LOCK), "it is still held"
        again = worker.take()
        assert again.name == b"waiter"
        worker.later(again, 1000)
        worker.done(holder)
        worker.grab()
        worker.silence()
        assert worker.status()[b"f"][1:3] == [1, 0]


def test_a_lock_timeout_of_nothing_does_not_make_jobs_run_in_circles(start: Start) -> None:
    with start() as server, Peer(server.port, Dialect.TODAY, WORKER) as worker:
        worker.set(b"lock-timeout", 0)
        worker.offer(b"f")
        for name in (b"holder", b"waiter"):
            worker.submit(b"f", name)
        holder, waiter = worker.take(), worker.take()
        assert worker.acquire(holder, LOCK)
        before = int(time.time())
        assert not worker.acquire(waiter, LOCK)
        [put_off] = [entry for entry in worker.dump() if entry.name == b"waiter"]
        assert put_off.run_at > before


def test_locks_hold_across_dialects_and_workers(dial: Dial, client: Peer, function: bytes) -> None:
    lock = lock_of(function)
    workers = [dial(Dialect.TODAY, WORKER).offer(function) for _ in range(3)]
    for number in range(3):
        client.submit(function, b"%d" % number)
    jobs = [worker.take() for worker in workers]
    granted = [worker.acquire(job, lock, 2) for worker, job in zip(workers, jobs, strict=True)]
    assert granted == [True, True, False]
    grab = workers[2].grab()
    workers[0].close()
    until(lambda: client.status()[function][0] == 2, "the server noticed")
    assert workers[2].assigned(grab).name in (jobs[0].name, jobs[2].name)
