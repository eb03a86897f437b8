"""run_now, retract, reserve_id, watch(first=True) and keep_result."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.model import Duplicate, JobState
from tests.unit.engine.recording import (
    ALIVE,
    NOW,
    OVER,
    RecordingJournal,
    RecordingWatcher,
    claim,
    job_in,
)


def test_run_now_queues_a_scheduled_job_once(engine: Engine, journal: RecordingJournal) -> None:
    job, worker = job_in(engine, JobState.SCHEDULED, background=True)
    engine.sleep(worker)
    engine.now = NOW + 10
    engine.run_now(job)
    assert (job.state, job.run_at) == (JobState.QUEUED, NOW + 10)
    assert worker.woken == 1
    assert journal.names == ["accepted", "changed"]
    assert (len(engine.schedule), engine.functions[b"f"].scheduled) == (0, 0)
    assert claim(engine, worker) is job
    engine.tick(NOW + 50)
    assert engine.claim(worker) is None


def test_after_run_now_a_job_can_be_rescheduled_to_its_old_time(engine: Engine) -> None:
    job, worker = job_in(engine, JobState.SCHEDULED, background=True)
    time = job.run_at
    engine.run_now(job)
    claim(engine, worker)
    engine.reschedule(worker, job, time)
    assert len(engine.schedule) == 1
    assert engine.schedule.jobs() == [job]
    engine.tick(time)
    assert claim(engine, worker) is job
    assert engine.tick(time) == float("inf")


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, *OVER, JobState.DEAD])
def test_run_now_ignores_jobs_that_are_not_scheduled(
    engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal, state: JobState
) -> None:
    job, _ = job_in(engine, state, watcher, background=True)
    calls, run_at = list(journal.calls), job.run_at
    engine.run_now(job)
    assert (job.state, job.run_at, journal.calls) == (state, run_at, calls)


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.QUEUED])
def test_retract_removes_a_job_without_watchers(engine: Engine, journal: RecordingJournal, state: JobState) -> None:
    job, worker = job_in(engine, state, background=True)
    engine.retract(job)
    assert not engine.jobs
    assert not engine.unique_jobs
    assert engine.functions[b"f"].total == 0
    assert journal.names == ["accepted"], "the store knows that it failed"
    engine.tick(NOW + 60)
    assert engine.claim(worker) is None


@pytest.mark.parametrize("state", ALIVE)
def test_a_retracted_job_with_watchers_becomes_a_foreground_job(
    engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal, state: JobState
) -> None:
    job, _ = job_in(engine, state, watcher, background=True)
    engine.retract(job)
    assert (job.state, job.background) == (state, False)
    engine.cancel(job)
    assert journal.names == ["accepted"]
    assert watcher.words == [("fail", "cancelled")]


def test_a_retracted_job_that_runs_is_not_interrupted(engine: Engine, journal: RecordingJournal) -> None:
    job, worker = job_in(engine, JobState.RUNNING, background=True)
    engine.retract(job)
    assert worker.running.jobs() == [job]
    engine.complete(worker, job, b"")
    assert journal.names == ["accepted"]


@pytest.mark.parametrize("state", OVER)
def test_retracting_a_finished_job_changes_nothing(engine: Engine, watcher: RecordingWatcher, state: JobState) -> None:
    job, _ = job_in(engine, state, watcher, background=True)
    engine.retract(job)
    assert job.state is state


def test_a_reserved_id_is_not_used_for_other_jobs(engine: Engine) -> None:
    number = engine.reserve_id()
    other = engine.submit(b"f", background=True)
    reserved = engine.submit(b"f", background=True, reserved_id=number)
    assert (reserved.id, reserved.handle) == (number, b"H:localhost:%d" % number)
    assert other.id != number
    assert engine.submit(b"f", background=True).id not in (number, other.id)


def test_watch_first_is_called_before_other_watchers(engine: Engine, watcher: RecordingWatcher) -> None:
    order: list[int] = []
    watchers = [watcher, RecordingWatcher(), RecordingWatcher()]
    for number, each in enumerate(watchers):
        each.react = lambda what, job, number=number: order.append(number)  # type: ignore[misc]
    job = engine.submit(b"f", watcher=watchers[0])
    engine.watch(job, watchers[1])
    engine.watch(job, watchers[2], first=True)
    engine.cancel(job)
    assert order == [2, 0, 1]


def test_watch_first_works_without_other_watchers(engine: Engine, watcher: RecordingWatcher) -> None:
    job = engine.submit(b"f", background=True)
    engine.watch(job, watcher, first=True)
    assert job.watchers == [watcher]


def test_a_result_is_kept_unless_the_submitter_does_not_want_it(engine: Engine) -> None:
    assert engine.submit(b"f", background=True).keeps_result
    assert not engine.submit(b"f", background=True, keeps_result=False).keeps_result


def test_keep_result_sets_the_flag_and_journals_it_once(engine: Engine, journal: RecordingJournal) -> None:
    job = engine.submit(b"f", background=True, keeps_result=False)
    engine.keep_result(job)
    engine.keep_result(job)
    assert job.keeps_result
    assert journal.names == ["accepted", "changed"]


def test_a_job_that_is_replaced_keeps_its_flag(engine: Engine) -> None:
    engine.submit(b"f", b"key", b"old", background=True, keeps_result=False)
    job = engine.submit(b"f", b"key", b"new", background=True, duplicate=Duplicate.REPLACE)
    assert (job.payload, job.keeps_result) == (b"new", False)
