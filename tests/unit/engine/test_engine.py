"""The verbs of operators, and tick."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.errors import DuplicateKeyError
from geartrain.model import Expiry, JobState, Priority
from tests.unit.engine.recording import (
    NOW,
    RecordingJournal,
    RecordingWatcher,
    claim,
    hire,
    payloads,
)


def die(engine: Engine, payload: bytes = b"", background: bool = False, unique: bytes = b"") -> LiveJob:
    """A job that was given up after one attempt."""
    engine.policy.max_attempts = 1
    job = engine.submit(
        b"f", unique, payload, background=background, watcher=None if background else RecordingWatcher()
    )
    kill(engine, job)
    return job


def kill(engine: Engine, job: LiveJob) -> None:
    worker = hire(engine, b"f")
    assert claim(engine, worker) is job
    engine.remove_worker(worker)
    assert job.state is JobState.DEAD


# Pausing


def test_a_paused_function_assigns_nothing_until_it_is_resumed(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f", payload=b"before", background=True)
    engine.pause(b"f")
    engine.submit(b"f", payload=b"after", background=True)
    engine.submit(b"f", payload=b"urgent", background=True, priority=Priority.HIGH)
    assert engine.claim(worker) is None
    assert engine.functions[b"f"].queued == 3
    engine.resume(b"f")
    assert payloads(engine, worker) == [b"urgent", b"before", b"after"]


def test_pausing_does_not_affect_running_jobs(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.pause(b"f")
    engine.complete(worker, job, b"out")
    assert watcher.words == [("complete", b"out")]


def test_jobs_of_a_paused_function_can_come_due_be_requeued_and_be_cancelled(engine: Engine) -> None:
    worker = hire(engine, b"f")
    running = engine.submit(b"f", background=True)
    claim(engine, worker)
    later = engine.submit(b"f", background=True, run_at=NOW + 1)
    engine.pause(b"f")
    engine.tick(NOW + 1)
    engine.remove_worker(worker)
    assert (running.state, later.state) == (JobState.QUEUED, JobState.QUEUED)
    engine.cancel(running)
    engine.resume(b"f")
    fresh = hire(engine, b"f")
    assert claim(engine, fresh) is later
    assert engine.claim(fresh) is None


def test_resuming_wakes_as_many_as_there_are_jobs(engine: Engine) -> None:
    engine.pause(b"f")
    workers = [hire(engine, b"f", asleep=True) for _ in range(4)]
    for _ in range(2):
        engine.submit(b"f", background=True)
    engine.resume(b"f")
    assert [worker.woken for worker in workers] == [1, 1, 0, 0]


def test_resuming_a_function_that_is_not_paused_changes_nothing(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.resume(b"f")
    engine.resume(b"unknown")
    assert worker.idle
    engine.submit(b"f", background=True)
    assert worker.woken == 1


# Dropping a function


def test_only_a_function_without_workers_and_jobs_is_dropped(engine: Engine) -> None:
    assert not engine.drop(b"f"), "unknown"
    worker = hire(engine, b"f")
    assert not engine.drop(b"f"), "a worker offers it"
    job = engine.submit(b"f", background=True)
    engine.remove_worker(worker)
    assert not engine.drop(b"f"), "a job waits"
    engine.cancel(job)
    later = engine.submit(b"f", background=True, run_at=NOW + 5)
    assert not engine.drop(b"f"), "a job is scheduled"
    engine.cancel(later)
    assert engine.drop(b"f")
    assert b"f" not in engine.functions
    assert not engine.drop(b"f")


def test_a_dropped_function_can_be_used_again(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.complete(worker, worker.running.jobs()[0], b"")
    engine.remove_worker(worker)
    assert engine.drop(b"f")
    engine.tick(NOW + 1)
    engine.submit(b"f", payload=b"new", background=True)
    assert payloads(engine, hire(engine, b"f")) == [b"new"]


# The dead


def test_a_retried_job_keeps_its_handle_and_starts_with_no_attempts(engine: Engine, journal: RecordingJournal) -> None:
    job = die(engine, b"in", background=True, unique=b"key")
    handle = job.handle
    engine.now = NOW + 9
    engine.retry(job)
    assert (job.state, job.attempts, job.reason, job.run_at) == (JobState.QUEUED, 0, "", NOW + 9)
    assert engine.dead == {}
    assert engine.find(handle) is job
    assert engine.find_unique(b"key") is job
    worker = hire(engine, b"f")
    assert claim(engine, worker) is job
    engine.complete(worker, job, b"out")
    assert journal.names == ["accepted", "changed", "changed", "finished"]


def test_a_retried_job_wakes_a_worker_and_is_queued_last(engine: Engine) -> None:
    job = die(engine, b"dead", background=True)
    engine.submit(b"f", payload=b"waiting", background=True)
    engine.pause(b"f")
    worker = hire(engine, b"f", asleep=True)
    engine.resume(b"f")
    engine.retry(job)
    assert worker.woken == 1
    assert payloads(engine, worker) == [b"waiting", b"dead"]


def test_a_dead_job_cannot_be_retried_while_another_has_its_key(engine: Engine, journal: RecordingJournal) -> None:
    job = die(engine, background=True, unique=b"key")
    engine.submit(b"f", b"key", background=True)
    calls = journal.calls
    with pytest.raises(DuplicateKeyError, match="unique key"):
        engine.retry(job)
    assert job.state is JobState.DEAD
    assert engine.dead == {job.id: job}
    assert journal.calls == calls


def test_a_dead_job_outlives_its_function(engine: Engine) -> None:
    job = die(engine, b"in", background=True)
    assert engine.drop(b"f")
    engine.retry(job)
    assert payloads(engine, hire(engine, b"f")) == [b"in"]


def test_a_deleted_job_is_gone(engine: Engine, journal: RecordingJournal) -> None:
    job = die(engine, background=True)
    engine.delete(job)
    assert engine.dead == {}
    assert job.state is JobState.CANCELLED
    assert journal.names == ["accepted", "changed", "finished"]


@pytest.mark.parametrize("verb", ["retry", "delete"])
def test_only_dead_jobs_can_be_retried_or_deleted(engine: Engine, journal: RecordingJournal, verb: str) -> None:
    job = engine.submit(b"f", background=True)
    with pytest.raises(KeyError):
        getattr(engine, verb)(job)
    assert job.state is JobState.QUEUED
    assert journal.names == ["accepted"]
    assert payloads(engine, hire(engine, b"f")) == [b""]


def test_dead_foreground_jobs_are_limited(engine: Engine) -> None:
    engine.policy.dead_foreground_limit = 3
    kept = [die(engine, background=True) for _ in range(5)]
    dead = [die(engine) for _ in range(5)]
    assert list(engine.dead.values()) == kept + dead[2:]


def test_a_limit_of_zero_keeps_no_dead_foreground_job(engine: Engine) -> None:
    engine.policy.dead_foreground_limit = 0
    die(engine)
    assert engine.dead == {}


def test_a_lower_limit_applies_from_the_next_dead_job_on(engine: Engine) -> None:
    dead = [die(engine) for _ in range(6)]
    engine.policy.dead_foreground_limit = 2
    last = die(engine)
    assert list(engine.dead.values()) == [dead[-1], last]


def test_a_foreground_job_that_was_retried_is_a_background_job_and_stays_when_it_dies_again(
    engine: Engine, journal: RecordingJournal
) -> None:
    engine.policy.dead_foreground_limit = 2
    job = die(engine)
    engine.retry(job)
    kill(engine, job)
    for _ in range(5):
        die(engine)
    assert engine.dead.get(job.id) is job
    assert len(engine.dead) == 3
    assert journal.names == ["accepted", "changed"]


def test_deleted_foreground_jobs_leave_room_for_others(engine: Engine) -> None:
    engine.policy.dead_foreground_limit = 3
    one, two, three = (die(engine) for _ in range(3))
    engine.delete(two)
    four = die(engine)
    assert list(engine.dead.values()) == [one, three, four]


# Time


def test_the_deadline_of_an_idle_engine_is_never(engine: Engine) -> None:
    engine.submit(b"f", background=True)
    assert engine.tick(NOW) == float("inf")
    assert engine.deadline() == float("inf")


def test_tick_sets_the_time(engine: Engine) -> None:
    engine.tick(NOW + 3)
    assert engine.now == NOW + 3
    assert engine.submit(b"f", background=True).run_at == NOW + 3


def test_the_deadline_is_the_soonest_of_all(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=20.0)
    engine.submit(b"f", background=True)
    claim(engine, worker)
    assert engine.deadline() == NOW + 20
    later = engine.submit(b"f", background=True, run_at=NOW + 10)
    assert engine.deadline() == NOW + 10
    hire(engine, b"g", asleep=True)
    engine.submit(b"g", background=True)
    assert engine.deadline() == NOW + 0.05
    engine.tick(NOW + 0.05)
    assert engine.deadline() == NOW + 10
    engine.cancel(later)
    assert engine.deadline() == NOW + 20


def test_a_tick_moves_a_bounded_number_of_jobs_and_is_due_again_at_once(engine: Engine) -> None:
    total = 4500
    for _ in range(total):
        engine.submit(b"f", background=True, run_at=NOW + 1)
    f = engine.functions[b"f"]
    moved = []
    deadline = engine.tick(NOW)
    while deadline <= NOW + 1:
        before = f.queued
        deadline = engine.tick(NOW + 1)
        moved.append(f.queued - before)
        assert moved[-1] > 0, "who comes back at once has something to do"
        assert len(moved) < 10
    assert sum(moved) == total
    assert max(moved) < total / 2
    worker = hire(engine, b"f")
    ids = [claim(engine, worker).id for _ in range(total)]
    assert ids == sorted(ids), "the order holds over several ticks"


def test_a_tick_expires_a_bounded_number_of_leases_and_is_due_again_at_once(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    total = 4500
    for _ in range(total):
        engine.submit(b"f", background=True)
        claim(engine, worker)
    taken = []
    deadline = NOW + 1
    while deadline <= NOW + 1:
        before = len(worker.taken)
        deadline = engine.tick(NOW + 1)
        taken.append(len(worker.taken) - before)
        assert taken[-1] > 0, "who comes back at once has something to do"
        assert len(taken) < 10
    assert sum(taken) == total
    assert max(taken) < total / 2


def test_leases_that_expire_at_once_do_not_keep_a_tick_busy(engine: Engine) -> None:
    """A worker that fetches its job again as soon as it loses it must not keep the tick busy for ever."""
    engine.now = 1.7e9  # here the smallest step of a float is longer than the timeout
    engine.policy.max_attempts = 10_000
    worker = hire(engine, b"f", timeout=1e-9, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", background=True)
    worker.react = lambda: engine.claim(worker)
    claim(engine, worker)
    engine.sleep(worker)

    def again() -> None:
        engine.claim(worker)
        engine.sleep(worker)

    worker.react = again
    engine.tick(1.7e9)
    assert job.attempts < 10_000


def test_a_late_tick_does_everything_that_was_due(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    running = engine.submit(b"f", background=True)
    claim(engine, worker)
    later = engine.submit(b"f", background=True, run_at=NOW + 7)
    assert engine.tick(NOW + 1000) == float("inf")
    assert (running.state, later.state) == (JobState.FAILED, JobState.QUEUED)


def test_a_clock_that_steps_back_loses_nothing(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    engine.submit(b"f", payload=b"one", background=True)
    engine.tick(NOW - 100)
    engine.submit(b"f", payload=b"two", background=True)
    engine.submit(b"f", payload=b"three", background=True, run_at=NOW)
    assert sorted(payloads(engine, worker)) == [b"one", b"two"]
    engine.tick(NOW)
    assert payloads(engine, worker) == [b"three"]
