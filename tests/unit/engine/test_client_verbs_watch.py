"""Watching, unwatching and cancelling jobs in every state."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.errors import LifecycleError
from geartrain.model import JobState
from tests.unit.engine.recording import (
    ALIVE,
    NOW,
    OVER,
    RecordingJournal,
    RecordingWatcher,
    claim,
    hire,
    job_in,
    payloads,
)


@pytest.mark.parametrize("state", ALIVE)
def test_a_background_job_survives_its_last_watcher(engine: Engine, watcher: RecordingWatcher, state: JobState) -> None:
    job, _ = job_in(engine, state, watcher, background=True)
    engine.unwatch_all(watcher)
    assert job.state is state
    assert engine.find(job.handle) is job
    assert job.watchers is None


@pytest.mark.parametrize("state", ALIVE)
def test_a_foreground_job_survives_after_a_background_submission_joined(
    engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal, state: JobState
) -> None:
    job, _ = job_in(engine, state, watcher)
    assert engine.submit(b"f", b"key", background=True) is job
    assert journal.calls == [("accepted", job.handle)]
    engine.unwatch_all(watcher)
    assert job.state is state


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.QUEUED])
def test_a_waiting_foreground_job_is_dropped_with_its_last_watcher(
    engine: Engine, watcher: RecordingWatcher, state: JobState
) -> None:
    other = RecordingWatcher()
    job, worker = job_in(engine, state, watcher)
    engine.watch(job, other)
    engine.unwatch_all(watcher)
    assert job.state is state
    engine.unwatch_all(other)
    assert job.state is JobState.CANCELLED
    assert not engine.jobs
    assert engine.functions[b"f"].total == 0
    assert not engine.unique_jobs
    engine.tick(NOW + 60)
    assert engine.claim(worker) is None
    assert watcher.heard == other.heard == []
    fresh = RecordingWatcher()
    assert engine.submit(b"f", b"key", watcher=fresh).handle != job.handle


def test_a_running_foreground_job_without_watchers_is_not_interrupted(
    engine: Engine, watcher: RecordingWatcher
) -> None:
    job, worker = job_in(engine, JobState.RUNNING, watcher)
    engine.unwatch_all(watcher)
    assert job.state is JobState.RUNNING
    assert worker.running.jobs() == [job]
    engine.data(job, b"part")
    engine.complete(worker, job, b"out")
    assert job.state is JobState.DONE
    assert watcher.heard == []


def test_an_abandoned_running_job_can_get_a_new_watcher(engine: Engine, watcher: RecordingWatcher) -> None:
    job, worker = job_in(engine, JobState.RUNNING, RecordingWatcher())
    assert job.watchers is not None
    engine.unwatch_all(job.watchers[0])
    assert engine.submit(b"f", b"key", watcher=watcher) is job
    engine.complete(worker, job, b"out")
    assert watcher.words == [("complete", b"out")]


def test_unwatch_all_cancels_the_jobs_without_other_watchers(engine: Engine, watcher: RecordingWatcher) -> None:
    other = RecordingWatcher()
    mine = engine.submit(b"f", watcher=watcher)
    shared = engine.submit(b"f", b"key", watcher=watcher)
    engine.watch(shared, other)
    durable = engine.submit(b"f", watcher=watcher, background=True)
    engine.unwatch_all(watcher)
    assert watcher.watching == set()
    assert [job.state for job in (mine, shared, durable)] == [
        JobState.CANCELLED,
        JobState.QUEUED,
        JobState.QUEUED,
    ]
    engine.unwatch_all(watcher)  # twice does no harm


def test_a_dropped_job_does_not_change_the_order_of_the_queue(engine: Engine) -> None:
    clients = [RecordingWatcher() for _ in range(5)]
    for number, client in enumerate(clients):
        engine.submit(b"f", payload=b"%d" % number, watcher=client)
    engine.unwatch_all(clients[0])
    engine.unwatch_all(clients[3])
    assert payloads(engine, hire(engine, b"f")) == [b"1", b"2", b"4"]


@pytest.mark.parametrize("state", [*OVER, JobState.DEAD])
def test_unwatching_a_finished_job_changes_nothing(engine: Engine, watcher: RecordingWatcher, state: JobState) -> None:
    job, _ = job_in(engine, state, watcher)
    engine.unwatch(job, watcher)
    assert job.state is state
    assert (engine.find_dead(job.handle) is job) == (state is JobState.DEAD)


def test_unwatching_a_job_that_is_not_watched_changes_nothing(engine: Engine, watcher: RecordingWatcher) -> None:
    nobodys = engine.submit(b"f")
    engine.unwatch(nobodys, watcher)
    assert nobodys.state is JobState.QUEUED


@pytest.mark.parametrize("state", ALIVE)
@pytest.mark.parametrize("background", [False, True])
def test_cancelling_ends_a_job_in_any_state(
    engine: Engine, watcher: RecordingWatcher, state: JobState, background: bool
) -> None:
    job, worker = job_in(engine, state, watcher, background)
    engine.cancel(job, "not wanted")
    assert job.state is JobState.CANCELLED
    assert job.reason == "not wanted"
    assert watcher.words == [("fail", "not wanted")]
    assert watcher.heard[0].state is JobState.CANCELLED
    assert (list(engine.jobs), worker.running.jobs(), engine.running) == ([], [], 0)
    assert engine.functions[b"f"].total == 0
    assert not engine.unique_jobs
    engine.tick(NOW + 60)
    assert engine.claim(worker) is None


def test_cancelling_a_dead_job_ends_it_too(engine: Engine, journal: RecordingJournal) -> None:
    job, _ = job_in(engine, JobState.DEAD, background=True)
    engine.cancel(job)
    assert job.state is JobState.CANCELLED
    assert engine.dead == {}
    assert journal.names == ["accepted", "changed", "finished"]


@pytest.mark.parametrize("state", OVER)
def test_a_finished_job_cannot_be_cancelled(
    engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal, state: JobState
) -> None:
    job, _ = job_in(engine, state, watcher, background=True)
    calls, heard = list(journal.calls), list(watcher.heard)
    with pytest.raises(LifecycleError):
        engine.cancel(job)
    assert (job.state, journal.calls, watcher.heard) == (state, calls, heard)


def test_the_worker_of_a_cancelled_job_gets_revoked_and_is_forgiven(engine: Engine, watcher: RecordingWatcher) -> None:
    job, worker = job_in(engine, JobState.RUNNING, watcher)
    engine.cancel(job)
    assert worker.taken == [job.handle]
    assert not worker.running
    assert worker.is_forgiven(job.handle)


def test_cancelling_a_queued_job_informs_no_worker(engine: Engine, watcher: RecordingWatcher) -> None:
    job, worker = job_in(engine, JobState.QUEUED, watcher)
    engine.cancel(job)
    assert worker.taken == []
    assert not worker.is_forgiven(job.handle)


def test_cancelling_removes_the_lease(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    assert engine.tick(NOW) == NOW + 5
    engine.cancel(job)
    assert engine.tick(NOW) == float("inf")
    engine.tick(NOW + 5)
    assert worker.taken == [job.handle]
