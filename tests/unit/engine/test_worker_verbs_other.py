"""claim_from, lease, hand_back, and failure codes."""

from geartrain.engine.engine import Engine
from geartrain.model import JobState
from tests.unit.engine.recording import (
    NOW,
    RecordingJournal,
    RecordingWatcher,
    claim,
    hire,
    payloads,
)


def test_claiming_from_one_queue_takes_nothing_else(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    for payload, function, priority in ((b"f high", b"f", 0), (b"f normal", b"f", 1), (b"g", b"g", 1)):
        engine.submit(function, payload=payload, priority=priority, background=True)
    job = engine.claim_from(worker, b"f", 1)
    assert job is not None
    assert (job.payload, job.owner, job.state, job.attempts) == (b"f normal", worker, JobState.RUNNING, 1)
    assert engine.claim_from(worker, b"f", 1) is None
    assert engine.claim_from(worker, b"f", 2) is None
    assert payloads(engine, worker) == [b"f high", b"g"]


def test_a_worker_stays_idle_if_claim_from_finds_no_job(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g", asleep=True)
    assert engine.claim_from(worker, b"f", 1) is None
    assert worker.idle
    engine.pause(b"f")
    engine.submit(b"f", background=True)
    assert engine.claim_from(worker, b"f", 1) is None, "paused"
    engine.resume(b"f")
    engine.sleep(worker)
    assert engine.claim_from(worker, b"f", 1) is not None
    assert not worker.idle


def test_claiming_from_one_queue_gives_a_lease(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    assert engine.claim_from(worker, b"f", 1) is job
    assert engine.tick(NOW) == NOW + 5


def test_lease_does_not_change_an_existing_deadline(engine: Engine) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    engine.lease(job, 1.0)
    assert engine.deadline() == float("inf"), "it does not run yet"
    claim(engine, worker)
    engine.lease(job, 5.0)
    engine.lease(job, 1.0)
    assert engine.tick(NOW + 1) == NOW + 5
    engine.tick(NOW + 5)
    assert job.state is JobState.QUEUED
    assert worker.taken == [job.handle]


def test_a_returned_job_does_not_count_the_attempt(engine: Engine, journal: RecordingJournal) -> None:
    engine.policy.max_attempts = 1
    worker = hire(engine, b"f", timeout=5.0)
    other = hire(engine, b"f", asleep=True)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.hand_back(worker, job)
    assert (job.state, job.attempts, job.owner, worker.running.jobs()) == (JobState.QUEUED, 0, None, [])
    assert journal.names == ["accepted", "changed"]
    assert engine.tick(NOW) == NOW + 0.05, "no lease any more, but a sleeper to look after"
    assert claim(engine, other) is job


def test_an_abandoned_job_that_is_returned_is_cancelled(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.unwatch_all(watcher)
    engine.hand_back(worker, job)
    assert job.state is JobState.CANCELLED
    assert not engine.jobs


def test_a_returned_copy_of_a_broadcast_is_dropped(engine: Engine) -> None:
    worker = hire(engine, b"b", broadcast=True)
    job = engine.submit(b"b", background=True)
    claim(engine, worker)
    engine.hand_back(worker, job)
    assert job.state is JobState.FAILED


def test_every_failure_has_a_code(engine: Engine) -> None:
    engine.policy.max_attempts = 1
    worker = hire(engine, b"f")
    codes = []
    for end in ("fail", "exception", "code 7", "cancel", "die"):
        job = engine.submit(b"f", background=True)
        assert job.code == 0
        claim(engine, worker)
        if end == "fail":
            engine.fail(worker, job)
        elif end == "cancel":
            engine.cancel(job)
        elif end == "die":
            engine.remove_worker(worker)
        else:
            engine.raise_exception(worker, job, b"oh", *([7] if end == "code 7" else []))
        codes.append(job.code)
    assert codes == [1, 1, 7, 1, 255]
    engine.retry(job)
    assert job.code == 0
