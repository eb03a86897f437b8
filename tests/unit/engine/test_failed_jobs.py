"""What becomes of a background job that failed: kept whole, dead or forgotten; and its retry."""

from collections.abc import Callable

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import FunctionPolicy, Policy
from geartrain.engine.worker import Worker
from geartrain.errors import DuplicateKeyError, QueueFullError
from geartrain.model import Attempt, FailureAction, JobState
from tests.unit.engine.recording import NOW, RecordingJournal, RecordingWatcher, claim, hire, payloads

KEEP, DEAD, FORGET = FailureAction

Fail = Callable[[Engine, Worker, LiveJob], None]


class FailureJournal(RecordingJournal):
    """Records which failed jobs are to be kept, and which are retried."""

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        self._write("failed", job, result, worker)

    def retried(self, job: LiveJob) -> None:
        self._write("retried", job)


@pytest.fixture
def journal() -> FailureJournal:
    return FailureJournal()


@pytest.fixture
def engine(journal: FailureJournal) -> Engine:
    engine = Engine(journal=journal)
    engine.now = NOW
    return engine


def report(engine: Engine, worker: Worker, job: LiveJob) -> None:
    engine.fail(worker, job, "bad input")


def throw(engine: Engine, worker: Worker, job: LiveJob) -> None:
    engine.raise_exception(worker, job, b"bad input")


def run_out_of_time(engine: Engine, worker: Worker, job: LiveJob) -> None:
    engine.tick(NOW + 2)


WAYS = pytest.mark.parametrize("fail", [report, throw, run_out_of_time])


def failed(engine: Engine, fail: Fail, watcher: RecordingWatcher | None = None, background: bool = True) -> LiveJob:
    """A job that failed."""
    worker = hire(engine, b"f", name=b"bob", timeout=2.0)
    job = engine.submit(b"f", b"key", b"in", background=background, watcher=watcher)
    assert claim(engine, worker) is job
    fail(engine, worker, job)
    engine.remove_worker(worker)
    return job


@WAYS
@pytest.mark.parametrize(("action", "call"), [(KEEP, "failed"), (FORGET, "finished"), (DEAD, "changed")])
def test_a_failed_job_goes_where_the_policy_says(
    engine: Engine, journal: FailureJournal, fail: Fail, action: FailureAction, call: str
) -> None:
    engine.policy.failures = action
    job = failed(engine, fail)
    assert journal.names == ["accepted", call]
    assert job.state is (JobState.DEAD if action is DEAD else JobState.FAILED)
    assert list(engine.dead.values()) == ([job] if action is DEAD else [])
    assert len(engine.jobs) == 0
    assert engine.find_unique(b"key") is None


@WAYS
def test_the_policy_of_a_function_comes_first(engine: Engine, journal: FailureJournal, fail: Fail) -> None:
    engine.policy.failures = DEAD
    engine.configure(b"f", FunctionPolicy(failures=FORGET))
    failed(engine, fail)
    assert journal.names == ["accepted", "finished"]
    engine.configure(b"f", FunctionPolicy(keep_for=1.0))
    engine.now = NOW
    assert failed(engine, fail).state is JobState.DEAD


@WAYS
@pytest.mark.parametrize("action", FailureAction)
def test_a_foreground_job_is_not_kept(
    engine: Engine, journal: FailureJournal, fail: Fail, action: FailureAction
) -> None:
    engine.policy.failures = action
    job = failed(engine, fail, RecordingWatcher(), background=False)
    assert job.state is JobState.FAILED
    assert (engine.dead, journal.names) == ({}, [])


@WAYS
def test_a_dead_job_has_the_failure_among_its_attempts(engine: Engine, fail: Fail) -> None:
    engine.policy.failures = DEAD
    job = failed(engine, fail)
    assert job.failed_attempts == [Attempt(NOW, engine.now, "test", b"bob", job.reason)]
    assert job.reason


@pytest.mark.parametrize("action", FailureAction)
def test_watchers_hear_the_same_whatever_becomes_of_the_job(engine: Engine, action: FailureAction) -> None:
    engine.policy.failures = action
    watcher = RecordingWatcher()
    failed(engine, report, watcher)
    failed(engine, throw, watcher)
    assert watcher.words == [("fail", "bad input"), ("exception", b"bad input")]


@WAYS
def test_a_failed_broadcast_can_be_dead(engine: Engine, fail: Fail) -> None:
    engine.policy.failures = DEAD
    worker = hire(engine, b"f", broadcast=True, timeout=2.0)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    fail(engine, worker, job)
    assert engine.dead == {job.id: job}


def restored(job: LiveJob) -> LiveJob:
    """The failed job as a store returns it."""
    copy = LiveJob(
        job.id, job.handle, job.function, job.unique, job.payload, job.priority, True, job.run_at, job.submitted_at,
        job.door,
    )  # fmt: skip
    copy.state, copy.attempts, copy.reason = JobState.FAILED, job.attempts, job.reason
    return copy


def test_a_retried_job_is_queued_under_its_handle(engine: Engine, journal: FailureJournal) -> None:
    job = restored(failed(engine, report))
    engine.drop(b"f")
    engine.now = NOW + 9
    free = engine.free_bytes
    engine.retry_failed(job)
    assert (job.state, job.attempts, job.reason, job.run_at) == (JobState.QUEUED, 0, "", NOW + 9)
    assert engine.find(job.handle) is job
    assert engine.find_unique(b"key") is job
    assert engine.free_bytes < free
    assert payloads(engine, hire(engine, b"f")) == [b"in"]
    assert journal.names == ["accepted", "failed", "retried"]


def test_a_retried_job_does_not_count_as_submitted(engine: Engine) -> None:
    engine.retry_failed(restored(failed(engine, report)))
    assert (engine.submitted, engine.functions[b"f"].submitted) == (1, 1)


def test_a_job_whose_key_another_has_is_not_retried(engine: Engine, journal: FailureJournal) -> None:
    job = restored(failed(engine, report))
    other = engine.submit(b"f", b"key", background=True)
    with pytest.raises(DuplicateKeyError, match=f"job {other.handle.decode()} has its unique key"):
        engine.retry_failed(job)
    assert job.state is JobState.FAILED
    assert journal.names == ["accepted", "failed", "accepted"]


def test_a_job_that_does_not_fit_is_not_retried(journal: FailureJournal) -> None:
    engine = Engine(Policy(max_queued_bytes=1000), journal=journal)
    job = restored(failed(engine, report))
    job.payload = bytes(1000)
    with pytest.raises(QueueFullError, match="max_queued_bytes"):
        engine.retry_failed(job)
    assert len(engine.jobs) == 0


def test_a_retried_job_is_found_by_a_handle_without_its_id(engine: Engine) -> None:
    job = restored(failed(engine, report))
    job.handle = b"H:elsewhere"
    engine.retry_failed(job)
    assert engine.find(b"H:elsewhere") is job
