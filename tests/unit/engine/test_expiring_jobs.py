"""Jobs with a time to live: no worker gets one after its time, and it ends as expired."""

import pytest

from geartrain.engine import deadlines
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.model import Duplicate, JobState
from tests.unit.engine.recording import NOW, RecordingJournal, RecordingWatcher, claim, hire


def submit(engine: Engine, seconds: float = 10.0, **more: object) -> LiveJob:
    return engine.submit(b"f", expires_at=NOW + seconds, background=True, **more)  # type: ignore[arg-type]


def test_queued_job_expires_at_its_time(engine: Engine, journal: RecordingJournal, watcher: RecordingWatcher) -> None:
    job = submit(engine, watcher=watcher, unique=b"key")
    assert engine.deadline() == NOW + 10
    engine.tick(NOW + 9.9)
    assert job.state is JobState.QUEUED
    engine.tick(NOW + 10)
    assert job.state is JobState.EXPIRED
    assert engine.find(job.handle) is None
    assert watcher.words == [("fail", "expired: no worker was free for it within 10.0 s")]
    assert journal.names == ["accepted", "finished"]
    assert (engine.outcomes.expired, engine.functions[b"f"].outcomes.expired, engine.submitted) == (1, 1, 1)
    assert submit(engine, 20.0, unique=b"key") is not job
    assert engine.claim(hire(engine, b"g")) is None


def test_scheduled_job_expires_before_its_time(engine: Engine) -> None:
    job = submit(engine, 5.0, run_at=NOW + 10)
    engine.tick(NOW + 5)
    assert (job.state, engine.scheduled, len(engine.schedule)) == (JobState.EXPIRED, 0, 0)
    assert engine.deadline() == deadlines.NEVER


def test_running_job_does_not_expire(engine: Engine) -> None:
    worker = hire(engine, b"f")
    job = submit(engine)
    claim(engine, worker)
    engine.tick(NOW + 60)
    assert job.state is JobState.RUNNING
    engine.complete(worker, job, b"")
    assert job.state is JobState.DONE


@pytest.mark.parametrize("seconds", [5.0, 60.0])
def test_job_of_a_lost_worker_expires_when_its_time_has_come(engine: Engine, seconds: float) -> None:
    worker = hire(engine, b"f")
    job = submit(engine)
    claim(engine, worker)
    engine.tick(NOW + seconds)
    engine.remove_worker(worker)
    assert job.state is JobState.QUEUED
    engine.tick(NOW + max(seconds, 10.0))
    assert job.state is JobState.EXPIRED


def test_rescheduled_job_expires(engine: Engine) -> None:
    worker = hire(engine, b"f")
    job = submit(engine)
    engine.reschedule(worker, claim(engine, worker), NOW + 30)
    engine.tick(NOW + 10)
    assert job.state is JobState.EXPIRED


@pytest.mark.parametrize(
    ("first", "second", "expires_at"), [(10.0, 20.0, NOW + 20), (10.0, 5.0, NOW + 10), (10.0, None, 0.0)]
)
def test_shared_job_expires_when_the_last_of_its_submissions_does(
    engine: Engine, first: float, second: float | None, expires_at: float
) -> None:
    job = submit(engine, first, unique=b"key")
    again = engine.submit(b"f", b"key", background=True, expires_at=0.0 if second is None else NOW + second)
    assert again is job
    assert job.expires_at == expires_at
    assert engine.deadline() == (expires_at or deadlines.NEVER)


def test_job_without_a_time_to_live_gets_none_by_another_submission(engine: Engine) -> None:
    job = engine.submit(b"f", b"key", background=True)
    assert submit(engine, unique=b"key") is job
    assert (job.expires_at, engine.deadline()) == (0.0, deadlines.NEVER)


def test_replaced_job_keeps_the_later_time(engine: Engine) -> None:
    submit(engine, unique=b"key", payload=b"old")
    job = submit(engine, 20.0, unique=b"key", payload=b"new", duplicate=Duplicate.REPLACE)
    engine.tick(NOW + 15)
    assert (job.state, job.payload) == (JobState.QUEUED, b"new")
    engine.tick(NOW + 20)
    assert job.state is JobState.EXPIRED


def test_dead_job_does_not_expire_and_runs_again_without_a_limit(engine: Engine) -> None:
    engine.policy.max_attempts = 1
    worker = hire(engine, b"f")
    job = submit(engine)
    claim(engine, worker)
    engine.remove_worker(worker)
    engine.tick(NOW + 60)
    assert job.state is JobState.DEAD
    engine.retry(job)
    engine.tick(NOW + 120)
    assert (job.state, job.expires_at) == (JobState.QUEUED, 0.0)


def test_restored_job_that_expired_meanwhile(engine: Engine, journal: RecordingJournal) -> None:
    job = LiveJob(7, b"H:host:7", b"f", b"", b"", 1, True, NOW - 100, NOW - 100, "http")
    job.expires_at = NOW - 50
    engine.restore(job)
    assert engine.end_expired(10) == 1
    assert (job.state, journal.names) == (JobState.EXPIRED, ["finished"])
    assert engine.end_expired(10) == 0


def test_jobs_that_ended_are_not_kept_until_they_would_have_expired(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = hire(engine, b"f")
    for _ in range(500):
        engine.complete(worker, submit_and_claim(engine, worker), b"")
    assert len(engine.expiring._entries) < 150


def submit_and_claim(engine: Engine, worker: object) -> LiveJob:
    submit(engine, 86_400.0)
    return claim(engine, worker)  # type: ignore[arg-type]


def test_many_jobs_expire_in_several_ticks(engine: Engine) -> None:
    engine.policy.moves_per_tick = 3
    jobs = [submit(engine) for _ in range(7)]
    assert engine.tick(NOW + 10) <= NOW + 10
    assert [job.state for job in jobs].count(JobState.EXPIRED) == 3
    engine.tick(NOW + 10)
    assert engine.tick(NOW + 10) > NOW + 10
    assert {job.state for job in jobs} == {JobState.EXPIRED}
