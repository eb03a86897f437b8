"""Leases: a job that times out fails or is requeued."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import FAILED, QUEUED, RUNNING
from geartrain.engine.policy import FunctionPolicy
from geartrain.model import Expiry, JobState
from tests.unit.engine.recording import (
    NOW,
    RecordingJournal,
    RecordingWatcher,
    claim,
    hire,
)


def test_an_ability_that_fails_on_timeout(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", watcher=watcher, background=True)
    claim(engine, worker)
    assert engine.tick(NOW + 4.9) == NOW + 5
    assert job.state is JobState.RUNNING
    engine.tick(NOW + 5)
    assert job.state is JobState.FAILED
    assert watcher.words == [("fail", "timed out after 5.0 s; the worker allows 5 s")]
    assert worker.taken == [job.handle]
    assert not worker.running
    assert not worker.is_forgiven(job.handle), "the door decides whether to forgive a late answer"
    assert len(engine.leases) == 0


def test_an_ability_that_requeues_on_timeout(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=5.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.tick(NOW + 5)
    assert (job.state, job.attempts, job.run_at) == (JobState.QUEUED, 1, NOW + 5)
    assert watcher.words == [("expired", None)]
    assert worker.taken == [job.handle]
    assert claim(engine, worker) is job
    assert engine.tick(NOW + 5) == NOW + 10


def test_the_timeout_of_a_job_requeues_it(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, timeout=3.0)
    claim(engine, worker)
    assert engine.tick(NOW) == NOW + 3
    engine.tick(NOW + 3)
    assert job.state is JobState.QUEUED
    assert worker.taken == [job.handle]


@pytest.mark.parametrize(
    ("of_job", "of_ability", "after", "state"),
    [
        (3.0, 5.0, 3.0, JobState.QUEUED),
        (5.0, 3.0, 3.0, JobState.FAILED),
        (4.0, 4.0, 4.0, JobState.FAILED),
        (0.0, 3.0, 3.0, JobState.FAILED),
        (3.0, 0.0, 3.0, JobState.QUEUED),
    ],
)
def test_the_smaller_timeout_wins(
    engine: Engine, of_job: float, of_ability: float, after: float, state: JobState
) -> None:
    worker = hire(engine, b"f", timeout=of_ability, on_timeout=Expiry.FAIL)
    job = engine.submit(b"f", background=True, timeout=of_job)
    claim(engine, worker)
    assert engine.tick(NOW) == NOW + after
    engine.tick(NOW + after)
    assert job.state is state


def test_without_a_timeout_there_is_no_lease(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f", background=True)
    claim(engine, worker)
    assert engine.tick(NOW + 1e9) == float("inf")


def test_a_job_that_times_out_too_often_is_dead(engine: Engine, watcher: RecordingWatcher) -> None:
    engine.policy.max_attempts = 2
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher, background=True)
    for second in (1, 2):
        claim(engine, worker)
        engine.tick(NOW + second)
    assert job.state is JobState.DEAD
    assert job.reason == ("gave up after 2 attempts; last: timed out after 1.0 s")
    assert worker.taken == [job.handle] * 2


def test_an_abandoned_job_that_times_out_is_cancelled(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.unwatch_all(watcher)
    engine.tick(NOW + 1)
    assert job.state is JobState.CANCELLED
    assert worker.taken == [job.handle]


def test_a_new_lease_is_independent_of_the_old_one(engine: Engine) -> None:
    one, two = hire(engine, b"f", timeout=5.0), hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    claim(engine, one)
    engine.now = NOW + 3
    engine.remove_worker(one)
    claim(engine, two)
    assert engine.tick(NOW + 5) == NOW + 8
    assert job.owner is two


def test_each_job_of_a_worker_has_its_own_lease(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    jobs = []
    for second in range(3):
        engine.now = NOW + second
        engine.submit(b"f", background=True)
        jobs.append(claim(engine, worker))
    for second in range(3):
        assert engine.deadline() == NOW + 5 + second
        engine.tick(NOW + 5 + second)
        assert [job.state for job in jobs].count(JobState.FAILED) == second + 1


def test_registering_again_does_not_change_a_lease(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.register(worker, b"f", timeout=1.0)
    engine.tick(NOW + 1)
    assert job.state is JobState.RUNNING
    engine.tick(NOW + 5)
    assert job.state is JobState.FAILED


def test_a_job_that_was_claimed_again_at_the_same_moment_has_one_lease(engine: Engine) -> None:
    one, two = hire(engine, b"f", timeout=5.0), hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    claim(engine, one)
    engine.remove_worker(one)
    claim(engine, two)
    assert len(engine.leases) == 1
    engine.complete(two, job, b"")
    assert len(engine.leases) == 0
    assert engine.tick(NOW + 5) == float("inf")


def test_a_worker_that_timed_out_may_get_the_job_again_at_once(engine: Engine, journal: RecordingJournal) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.sleep(worker)
    order = []
    worker.react = lambda: order.append((engine.claim(worker), list(worker.taken)))
    engine.tick(NOW + 1)
    assert order == [(job, [job.handle])], "told that it lost the job before it is given it again"
    assert worker.running.jobs() == [job]
    assert journal.names == ["accepted", "changed"]


def test_expired_is_called_before_the_job_is_requeued(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.tick(NOW + 1)
    assert watcher.words == [("expired", None)]
    assert watcher.heard[0].state is JobState.RUNNING
    assert job.state is JobState.QUEUED


def test_a_watcher_may_unwatch_from_expired(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    watcher.react = lambda what, job: engine.unwatch(job, watcher)
    engine.tick(NOW + 1)
    assert job.state is JobState.CANCELLED
    assert worker.taken == [job.handle]
    assert not engine.jobs


def test_a_watcher_may_cancel_from_expired(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher, background=True)
    claim(engine, worker)
    watcher.react = lambda what, job: engine.cancel(job) if what == "expired" else None
    engine.tick(NOW + 1)
    assert job.state is JobState.CANCELLED
    assert watcher.words == [("expired", None), ("fail", "cancelled")]
    assert worker.taken == [job.handle], "told once"
    assert (engine.running, len(engine.leases), len(engine.jobs)) == (0, 0, 0)


def test_expired_is_not_called_if_the_timeout_fails_the_job(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.FAIL)
    engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.tick(NOW + 1)
    assert [what for what, _ in watcher.words] == ["fail"]


@pytest.mark.parametrize("verb", ["cancel", "unwatch_all"])
def test_expired_is_not_called_after_an_earlier_watcher_ended_the_job(
    engine: Engine, watcher: RecordingWatcher, verb: str
) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher)
    engine.watch(job, watcher)
    claim(engine, worker)
    argument = job if verb == "cancel" else watcher
    watcher.react = lambda what, job: getattr(engine, verb)(argument) if what == "expired" else None
    engine.tick(NOW + 1)
    assert [what for what, _ in watcher.words].count("expired") == 1
    assert job.state is JobState.CANCELLED


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_running_jobs_keep_the_time_they_have_left_when_the_clock_is_set(engine: Engine, seconds: float) -> None:
    worker = hire(engine, b"f", timeout=10.0)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.tick(NOW + 4.0)
    engine.clock_moved(seconds)
    engine.tick(NOW + 4.0 + seconds)
    assert job.state is JobState.RUNNING
    assert engine.deadline() == NOW + 10.0 + seconds
    engine.tick(NOW + 9.9 + seconds)
    assert job.state is JobState.RUNNING
    engine.tick(NOW + 10.0 + seconds)
    assert job.state is not JobState.RUNNING
    assert "10.0 s" in job.reason, "the step is not part of the time that it ran"


def test_scheduled_jobs_follow_the_clock(engine: Engine) -> None:
    job = engine.submit(b"f", background=True, run_at=NOW + 1800.0)
    engine.clock_moved(3600.0)
    engine.tick(NOW + 3600.0)
    assert job.state is JobState.QUEUED


@pytest.mark.parametrize("action", list(Expiry))
def test_max_run_of_a_function_needs_nothing_from_the_worker(engine: Engine, action: Expiry) -> None:
    engine.configure(b"f", FunctionPolicy(max_run=5.0))
    worker = hire(engine, b"f", on_timeout=action)
    job = engine.submit(b"f", background=True)
    assert engine.claim(worker) is job
    engine.tick(engine.now + 4.9)
    assert job.state is RUNNING
    engine.tick(engine.now + 0.1)
    assert job.handle not in worker.running
    if action is Expiry.FAIL:
        assert job.state is FAILED
        assert job.reason == "timed out after 5.0 s; max_run is 5 s"
    else:
        assert job.state is QUEUED
        assert job.failed_attempts is not None
        assert job.failed_attempts[0].reason == "timed out after 5.0 s"


@pytest.mark.parametrize(("of_ability", "of_job"), [(3.0, 0.0), (0.0, 3.0)])
def test_a_shorter_limit_than_max_run_wins(engine: Engine, of_ability: float, of_job: float) -> None:
    engine.configure(b"f", FunctionPolicy(max_run=5.0))
    worker = hire(engine, b"f", timeout=of_ability)
    job = engine.submit(b"f", background=True, timeout=of_job)
    assert engine.claim(worker) is job
    engine.tick(engine.now + 3.0)
    assert job.state is (FAILED if of_ability else QUEUED)
    assert "max_run" not in job.reason


def test_max_run_can_be_taken_back(engine: Engine) -> None:
    engine.configure(b"f", FunctionPolicy(max_run=5.0))
    engine.configure(b"f", FunctionPolicy())
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    engine.claim(worker)
    engine.tick(engine.now + 1000.0)
    assert job.state is RUNNING
