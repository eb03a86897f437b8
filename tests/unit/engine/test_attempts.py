"""Attempts that did not end their job, and workers that ask for another one."""

from geartrain.engine.engine import Engine
from geartrain.engine.state import ATTEMPTS_KEPT
from geartrain.model import Attempt, Expiry, JobState, pack_attempts, unpack_attempts
from tests.unit.engine.recording import NOW, RecordingJournal, claim, hire, job_in


def test_a_job_that_succeeds_at_once_has_none(engine: Engine) -> None:
    job, _ = job_in(engine, JobState.DONE)
    assert job.failed_attempts is None


def test_a_lost_worker(engine: Engine) -> None:
    worker = hire(engine, b"f", name=b"bob")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.now = NOW + 5
    engine.remove_worker(worker)
    assert job.failed_attempts == [Attempt(NOW, NOW + 5, "test", b"bob", "worker disconnected")]


def test_a_lease_that_ran_out(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=3.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.tick(NOW + 3)
    assert job.failed_attempts == [Attempt(NOW, NOW + 3, "test", b"", "timed out after 3.0 s")]


def test_failures_that_are_tried_again_and_the_last_one(engine: Engine) -> None:
    engine.policy.max_attempts = 2
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    for reason in ("first", "second"):
        claim(engine, worker)
        engine.fail(worker, job, reason, retry=True)
        engine.tick(NOW + 100)
    assert job.state is JobState.DEAD
    assert [trial.reason for trial in job.failed_attempts or ()] == ["first", "second"]


def test_what_counts_as_never_given_is_none(engine: Engine) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.hand_back(worker, job)
    claim(engine, worker)
    engine.reschedule(worker, job, NOW + 1)
    assert job.failed_attempts is None


def test_only_the_last_are_kept(engine: Engine) -> None:
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


def test_postponing_frees_the_worker_in_silence(engine: Engine, journal: RecordingJournal) -> None:
    job, worker = job_in(engine, JobState.RUNNING, background=True)
    assert engine.reschedule_failed(job, NOW + 60, "busy")
    assert (job.state, job.run_at, job.attempts) == (JobState.SCHEDULED, NOW + 60, 1)
    assert (worker.running.jobs(), worker.taken, worker.is_forgiven(job.handle)) == ([], [], True)
    assert journal.names == ["accepted", "changed"]
    engine.tick(NOW + 60)
    assert claim(engine, worker) is job


def test_burying_sets_it_aside(engine: Engine) -> None:
    job, worker = job_in(engine, JobState.RUNNING, background=True)
    assert engine.mark_dead(job, "hopeless")
    assert (job.state, job.reason, worker.running.jobs(), worker.taken) == (JobState.DEAD, "hopeless", [], [])
    assert [trial.reason for trial in job.failed_attempts or ()] == ["hopeless"]


def test_only_what_one_worker_runs_can_be_put_off(engine: Engine) -> None:
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


def test_nonsense_is_no_past() -> None:
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
