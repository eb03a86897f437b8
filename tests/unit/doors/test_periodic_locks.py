"""Locks, step by step and at random: never more holders than the limit, and nobody waits for a lock that is free."""

from hypothesis import given
from hypothesis import strategies as st

from geartrain.doors.periodic.locks import Locks
from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RUNNING, SCHEDULED
from geartrain.model import Duplicate

PATIENCE = 300.0
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "acquire", "release", "done", "fail", "later", "cancel", "replace", "pass"]),
        st.integers(0, 5),
        st.sampled_from([b"lock", b"lock", b"other"]),
    ),
    max_size=60,
)


class Bench:
    """One worker that takes every job it can get, and the locks."""

    def __init__(self, jobs: int) -> None:
        self.engine = Engine()
        self.engine.now = 1000.0
        self.locks = Locks(self.engine)
        self.worker = PollingWorker("test")
        self.engine.register(self.worker, b"f")
        for number in range(jobs):
            self.submit(b"%d" % number)
        self.claim()

    def submit(self, name: bytes, run_at: float = 0.0) -> LiveJob:
        return self.engine.submit(b"f", name, background=True, run_at=run_at, duplicate=Duplicate.REPLACE)

    def claim(self) -> list[LiveJob]:
        claimed = []
        while (job := self.engine.claim(self.worker)) is not None:
            claimed.append(job)
        return claimed

    @property
    def running(self) -> list[LiveJob]:
        return self.worker.running.jobs()

    def acquire(self, job: LiveJob, lock: bytes = b"lock", limit: int = 1) -> bool:
        return self.locks.acquire(lock, limit, self.worker, job, PATIENCE)

    def put_off(self, job: LiveJob, seconds: float) -> None:
        self.engine.reschedule(self.worker, job, self.engine.now + seconds)
        self.locks.release_all(job)

    def complete(self, job: LiveJob) -> None:
        self.engine.complete(self.worker, job, b"")
        self.locks.release_all(job)


def test_who_has_waited_longest_comes_first() -> None:
    bench = Bench(4)
    first, *others = bench.running
    assert bench.acquire(first)
    assert not any(bench.acquire(job) for job in others)
    assert bench.locks.waiting() == {b"f": 3}
    bench.complete(first)
    assert bench.claim() == [others[0]]
    assert bench.locks.waiting() == {b"f": 2}


def test_one_that_came_back_by_itself_and_was_put_off_since_is_left_alone() -> None:
    """Its old place in the line must not make it run before the time that its worker chose."""
    bench = Bench(2)
    holder, waiter = bench.running
    assert bench.acquire(holder)
    assert not bench.acquire(waiter)
    bench.engine.tick(bench.engine.now + PATIENCE)
    assert bench.claim() == [waiter]
    bench.put_off(waiter, 5000.0)
    run_at = waiter.run_at
    bench.complete(holder)
    assert (waiter.state, waiter.run_at) == (SCHEDULED, run_at)
    assert not bench.claim()


def test_one_that_asks_twice_has_one_place() -> None:
    bench = Bench(3)
    holder, waiter, other = bench.running
    assert bench.acquire(holder)
    assert not bench.acquire(waiter)
    assert not bench.acquire(other)
    bench.engine.tick(bench.engine.now + PATIENCE)
    assert bench.claim() == [waiter, other]
    assert not bench.acquire(other)
    assert not bench.acquire(waiter)
    bench.complete(holder)
    assert bench.claim() == [other], "its new place counts"
    assert bench.acquire(other)
    bench.put_off(other, 5000.0)
    assert bench.claim() == [waiter]
    bench.complete(waiter)
    assert other.state is SCHEDULED


def test_waiting_for_a_lock_is_no_attempt() -> None:
    bench = Bench(2)
    holder, waiter = bench.running
    waiter.attempts = 5  # four workers have died of it
    assert bench.acquire(holder)
    assert not bench.acquire(waiter)
    assert waiter.attempts == 4


def test_nothing_is_kept_of_a_lock_that_is_free() -> None:
    bench = Bench(2)
    for lock in (b"lock", b"other"):
        for job in bench.running:
            bench.acquire(job, lock, 2)
    for job in bench.running:
        bench.complete(job)
    assert not bench.locks._locks
    assert not bench.locks._held


@given(ACTIONS, st.sampled_from([1, 2]))
def test_at_random(actions: list[tuple[str, int, bytes]], limit: int) -> None:
    bench = Bench(5)
    for action, place, lock in actions:
        running = bench.running
        if action == "pass":
            bench.engine.tick(bench.engine.now + place * 100.0)
        elif action == "replace":
            bench.submit(b"%d" % place)
        elif running:
            act(bench, action, running[place % len(running)], lock, limit)
        for name, state in bench.locks._locks.items():
            assert len(state.holders) <= limit, name
            assert all(job.state is RUNNING for job in state.holders), "a job that does not run holds a lock"
        bench.claim()
    finish(bench, limit)


def act(bench: Bench, action: str, job: LiveJob, lock: bytes, limit: int) -> None:
    if action == "acquire":
        bench.acquire(job, lock, limit)
    elif action == "release":
        bench.locks.release(lock, job)
    elif action == "done":
        bench.complete(job)
    elif action == "later":
        bench.put_off(job, 50.0)
    elif action == "fail":
        bench.engine.fail(bench.worker, job, retry=True)
        bench.locks.release_all(job)
    else:
        bench.engine.cancel(job)
        bench.locks.release_all(job)


def finish(bench: Bench, limit: int) -> None:
    """Every job can be brought to its end, and then nothing is left."""
    for _ in range(100):
        for job in bench.running:
            if job.state is RUNNING and bench.acquire(job, b"lock", limit):
                bench.complete(job)
        bench.engine.tick(bench.engine.now + 4000.0)
        bench.claim()
        if not bench.engine.jobs:
            break
    assert not bench.engine.jobs
    assert not bench.locks._held
