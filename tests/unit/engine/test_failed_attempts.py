"""Failed attempts, and the verbs that record them: reschedule_failed and mark_dead."""

from geartrain.engine.engine import Engine
from geartrain.engine.failed_jobs import ATTEMPTS_KEPT
from geartrain.model import Attempt, Expiry, JobState, pack_attempts, unpack_attempts
from tests.unit.engine.recording import NOW, RecordingJournal, claim, hire, job_in


def test_a_job_that_succeeds_at_once_has_no_failed_attempts(engine: Engine) -> None:
    job, _ = job_in(engine, JobState.DONE)
    assert job.failed_attempts is None


def test_a_lost_worker_is_a_failed_attempt(engine: Engine) -> None:
    worker = hire(engine, b"f", name=b"bob")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.now = NOW + 5
    engine.remove_worker(worker)
    assert job.failed_attempts == [Attempt(NOW, NOW + 5, "test", b"bob", "worker disconnected")]


def test_an_expired_lease_is_a_failed_attempt(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=3.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.tick(NOW + 3)
    assert job.failed_attempts == [Attempt(NOW, NOW + 3, "test", b"", "timed out after 3.0 s")]


def test_every_retried_failure_is_recorded(engine: Engine) -> None:
    engine.policy.max_attempts = 2
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    for reason in ("first", "second"):
        claim(engine, worker)
        engine.fail(worker, job, reason, retry=True)
        engine.tick(NOW + 100)
    assert job.state is JobState.DEAD
    assert [trial.reason for trial in job.failed_attempts or ()] == ["first", "second"]


def test_a_returned_or_rescheduled_job_has_no_failed_attempt(engine: Engine) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.hand_back(worker, job)
    claim(engine, worker)
    engine.reschedule(worker, job, NOW + 1)
    assert job.failed_attempts is None


def test_only_the_latest_attempts_are_kept(engine: Engine) -> None:
    engine.policy.max_attempts = 0
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    for number in range(ATTEMPTS_KEPT + 5):
        claim(engine, worker)
        engine.reschedule_failed(job, engine.now, f"no {number}")
        engine.tick(engine.now)
    assert [trial.reason for trial in job.failed_attempts or ()] == [
        f"no {number}" for number in range(5, ATTEMPTS_KEPT + 5)
    ]


def test_reschedule_failed_takes_the_job_without_informing_the_worker(
    engine: Engine, journal: RecordingJournal
) -> None:
    job, worker = job_in(engine, JobState.RUNNING, background=True)
    assert engine.reschedule_failed(job, NOW + 60, "busy")
    assert (job.state, job.run_at, job.attempts) == (JobState.SCHEDULED, NOW + 60, 1)
    assert (worker.running.jobs(), worker.taken, worker.is_forgiven(job.handle)) == ([], [], True)
    assert journal.names == ["accepted", "changed"]
    engine.tick(NOW + 60)
    assert claim(engine, worker) is job


def test_mark_dead_moves_the_job_to_the_dead(engine: Engine) -> None:
    job, worker = job_in(engine, JobState.RUNNING, background=True)
    assert engine.mark_dead(job, "hopeless")
    assert (job.state, job.reason, worker.running.jobs(), worker.taken) == (JobState.DEAD, "hopeless", [], [])
    assert [trial.reason for trial in job.failed_attempts or ()] == ["hopeless"]


def test_only_a_job_with_one_owner_can_be_rescheduled_as_failed(engine: Engine) -> None:
    for state in (JobState.QUEUED, JobState.SCHEDULED, JobState.DEAD):
        job, _ = job_in(engine, state, background=True)
        assert not engine.reschedule_failed(job, NOW + 1, "")
        assert not engine.mark_dead(job, "")
        assert job.state is state
        engine.cancel(job)
    worker = hire(engine, b"b", broadcast=True)
    job = engine.submit(b"b", background=True)
    claim(engine, worker)
    assert not engine.reschedule_failed(job, NOW + 1, "")
    assert not engine.mark_dead(job, "")


def test_invalid_packed_attempts_are_ignored() -> None:
    for nonsense in (
        b"\0",
        b"{}",
        b"[1]",
        b"[[1,2]]",
        b'[["x",2,"","",""]]',
        b"[" * 100_000,
        b'[[1,2,"","\\u2603",""]]',
    ):
        assert unpack_attempts(nonsense) == []
    assert pack_attempts(None) == pack_attempts([]) == b""
