"""Registering functions, claiming jobs, reporting on them."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.model import Expiry, JobState
from tests.unit.engine.recording import (
    NOW,
    RecordingJournal,
    RecordingWatcher,
    claim,
    hire,
    payloads,
)


def test_registering_twice_counts_once_and_the_last_timeout_applies(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.register(worker, b"f", timeout=9.0, on_timeout=Expiry.REQUEUE)
    assert engine.functions[b"f"].workers == 1
    assert (worker.abilities[b"f"].timeout, worker.abilities[b"f"].on_timeout) == (9.0, Expiry.REQUEUE)


def test_unregistering_an_unknown_function_changes_nothing(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.unregister(worker, b"unknown")
    engine.submit(b"g", background=True)
    engine.unregister(worker, b"g")
    assert (engine.functions[b"f"].workers, engine.functions[b"g"].workers) == (1, 0)


def test_jobs_of_an_unregistered_function_are_not_assigned(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    engine.submit(b"f", payload=b"f", background=True)
    engine.submit(b"g", payload=b"g", background=True)
    engine.unregister(worker, b"f")
    assert engine.functions[b"f"].workers == 0
    assert payloads(engine, worker) == [b"g"]


def test_a_function_registered_between_claims_is_served(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"g", background=True)
    assert engine.claim(worker) is None
    engine.register(worker, b"g")
    assert claim(engine, worker).function == b"g"


def test_a_worker_without_functions_gets_no_job(engine: Engine) -> None:
    worker = hire(engine)
    engine.submit(b"f", background=True)
    assert engine.claim(worker) is None
    engine.sleep(worker)
    assert worker.idle
    assert worker.woken == 0


def test_a_claimed_job_has_one_owner(engine: Engine) -> None:
    one, two = hire(engine, b"f"), hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    engine.now = NOW + 2
    assert claim(engine, one) is job
    assert engine.claim(two) is None
    assert (job.state, job.owner, job.attempts, job.started_at) == (JobState.RUNNING, one, 1, NOW + 2)
    assert (one.running.jobs(), two.running.jobs()) == ([job], [])
    assert (engine.running, engine.functions[b"f"].running) == (1, 1)


def test_a_worker_may_run_many_jobs(engine: Engine) -> None:
    worker = hire(engine, b"f")
    jobs = [engine.submit(b"f", background=True) for _ in range(3)]
    assert [claim(engine, worker) for _ in jobs] == jobs
    assert worker.running.jobs() == jobs
    engine.complete(worker, jobs[1], b"")
    assert worker.running.jobs() == [jobs[0], jobs[2]]


def test_completing_ends_the_job(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", b"key", watcher=watcher)
    claim(engine, worker)
    engine.complete(worker, job, b"out")
    assert (job.state, job.owner, worker.running.jobs(), list(engine.jobs)) == (JobState.DONE, None, [], [])
    assert watcher.words == [("complete", b"out")]
    assert (engine.running, engine.functions[b"f"].total, len(engine.leases)) == (0, 0, 0)
    assert not engine.unique_jobs


def test_failing_is_final_unless_the_worker_asks_for_a_retry(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, background=True)
    claim(engine, worker)
    engine.fail(worker, job, "cannot")
    assert (job.state, job.reason) == (JobState.FAILED, "cannot")
    assert watcher.words == [("fail", "cannot")]
    assert not engine.jobs
    assert not engine.dead


def test_a_retry_waits_longer_every_time_until_the_job_is_dead(engine: Engine, watcher: RecordingWatcher) -> None:
    engine.policy.max_attempts = 4
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, background=True)
    delays = []
    while job.state is not JobState.DEAD:
        assert claim(engine, worker) is job
        engine.fail(worker, job, "again", retry=True)
        if job.state is JobState.SCHEDULED:
            assert watcher.heard == []
            assert engine.claim(worker) is None
            delays.append(engine.deadline() - engine.now)
            engine.tick(engine.deadline())
    assert delays == [1.0, 2.0, 4.0]
    assert job.reason == "gave up after 4 attempts; last: again"
    assert watcher.words == [("fail", job.reason)]
    assert engine.dead == {job.id: job}


@pytest.mark.parametrize("exhausted", [False, True])
def test_an_abandoned_job_is_not_retried(engine: Engine, watcher: RecordingWatcher, exhausted: bool) -> None:
    engine.policy.max_attempts = 1 if exhausted else 5
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.unwatch_all(watcher)
    engine.fail(worker, job, retry=True)
    assert job.state is JobState.CANCELLED
    assert not engine.jobs
    assert not engine.dead


def test_an_exception_is_a_failure_with_data(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.raise_exception(worker, job, b"\xffoh" + b"x" * 2000)
    assert job.state is JobState.FAILED
    assert job.reason.startswith("\ufffdoh")
    assert len(job.reason) <= 1000
    assert watcher.words == [("exception", b"\xffoh" + b"x" * 2000)]


def test_rescheduling_counts_steps_and_resets_attempts(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, count=5)
    claim(engine, worker)
    engine.reschedule(worker, job, NOW + 30, step=2)
    assert (job.state, job.count, job.attempts, job.run_at) == (JobState.SCHEDULED, 7, 0, NOW + 30)
    assert (worker.running.jobs(), engine.running, engine.functions[b"f"].scheduled) == ([], 0, 1)
    assert watcher.heard == []
    engine.tick(NOW + 30)
    assert claim(engine, worker) is job
    assert job.attempts == 1
    engine.reschedule(worker, job, NOW + 60)
    assert job.count == 7


def test_rescheduling_without_resetting_the_attempts(engine: Engine, journal: RecordingJournal) -> None:
    job = engine.submit(b"f", background=True)
    lost = hire(engine, b"f")
    claim(engine, lost)
    engine.remove_worker(lost)
    worker = hire(engine, b"f")
    claim(engine, worker)
    assert job.attempts == 2
    engine.reschedule(worker, job, NOW + 30, reset_attempts=False)
    assert (job.attempts, journal.entries[-1].attempts) == (1, 1)


@pytest.mark.parametrize("run_at", [NOW - 5, NOW, 0.0])
def test_rescheduling_for_the_past_is_due_at_once(engine: Engine, run_at: float) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.reschedule(worker, job, run_at)
    assert engine.deadline() <= NOW
    engine.tick(NOW)
    assert claim(engine, worker) is job


def test_rescheduling_an_abandoned_job_ends_it(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.unwatch_all(watcher)
    engine.reschedule(worker, job, NOW + 30)
    assert job.state is JobState.CANCELLED
    assert not engine.jobs
