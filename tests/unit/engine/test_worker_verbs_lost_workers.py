"""Lost workers: their jobs are requeued, and dead after too many attempts."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.model import JobState
from tests.unit.engine.recording import (
    RecordingWatcher,
    claim,
    hire,
    payloads,
)


@pytest.mark.parametrize("how", ["leave", "unregister"])
def test_a_lost_job_goes_to_the_end_of_its_queue(engine: Engine, how: str) -> None:
    worker = hire(engine, b"f")
    for payload in (b"1", b"2"):
        engine.submit(b"f", payload=payload, background=True)
    job = claim(engine, worker)
    engine.submit(b"f", payload=b"3", background=True)
    if how == "leave":
        engine.remove_worker(worker)
    else:
        engine.unregister(worker, b"f")
    assert (job.state, job.attempts, job.owner, job.progress) == (JobState.QUEUED, 1, None, None)
    assert (worker.running.jobs(), engine.running) == ([], 0)
    engine.submit(b"f", payload=b"4", background=True)
    assert payloads(engine, hire(engine, b"f")) == [b"2", b"3", b"1", b"4"]
    assert job.attempts == 2


def test_a_lost_worker_does_not_call_watchers(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.remove_worker(worker)
    assert watcher.heard == []
    assert job.watchers == [watcher]


def test_unregistering_requeues_only_the_jobs_of_that_function(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    f, g = engine.submit(b"f", background=True), engine.submit(b"g", background=True)
    claim(engine, worker)
    claim(engine, worker)
    engine.unregister(worker, b"f")
    assert (f.state, g.state) == (JobState.QUEUED, JobState.RUNNING)
    assert worker.running.jobs() == [g]


def test_an_abandoned_job_of_a_lost_worker_is_cancelled(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", b"key", watcher=watcher)
    claim(engine, worker)
    engine.unwatch_all(watcher)
    engine.remove_worker(worker)
    assert job.state is JobState.CANCELLED
    assert (list(engine.jobs), engine.dead, engine.running) == ([], {}, 0)
    assert not engine.unique_jobs


def test_after_too_many_lost_workers_the_job_is_dead(engine: Engine, watcher: RecordingWatcher) -> None:
    engine.policy.max_attempts = 3
    job = engine.submit(b"f", b"key", watcher=watcher, background=True)
    for attempt in range(1, 4):
        assert job.state is JobState.QUEUED
        worker = hire(engine, b"f")
        claim(engine, worker)
        assert job.attempts == attempt
        engine.remove_worker(worker)
    assert job.state is JobState.DEAD
    assert job.reason == "gave up after 3 attempts; last: worker disconnected"
    assert watcher.words == [("fail", job.reason)]
    assert watcher.heard[0].state is JobState.DEAD
    assert (list(engine.jobs), engine.dead, engine.running) == ([], {job.id: job}, 0)
    assert engine.functions[b"f"].total == 0
    assert not engine.unique_jobs


def test_without_a_limit_a_job_is_never_dead(engine: Engine) -> None:
    engine.policy.max_attempts = 0
    job = engine.submit(b"f", background=True)
    for _ in range(50):
        worker = hire(engine, b"f")
        claim(engine, worker)
        engine.remove_worker(worker)
    assert (job.state, job.attempts) == (JobState.QUEUED, 50)


def test_remove_worker_removes_abilities_and_jobs(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g", asleep=True)
    engine.remove_worker(worker)
    assert (worker.idle, worker.crew, worker.abilities) == (False, None, {})
    assert (engine.functions[b"f"].workers, engine.functions[b"g"].workers) == (0, 0)
    engine.submit(b"f", background=True)
    assert worker.woken == 0
    engine.remove_worker(worker)  # twice does no harm
    assert engine.functions[b"f"].workers == 0


def test_a_removed_worker_can_register_again(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.remove_worker(worker)
    engine.submit(b"g", background=True)
    engine.register(worker, b"g")
    assert claim(engine, worker).function == b"g"
