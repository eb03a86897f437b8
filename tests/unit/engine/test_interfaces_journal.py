"""What the journal hears of a background job's life, call by call; foreground jobs are none of its business.

The recording journal itself fails a test as soon as a foreground job is mentioned to it.
"""

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.model import Duplicate, Expiry, JobState
from tests.unit.engine.recording import NOW, RecordingJournal, RecordingWatcher, claim, hire


def test_the_base_class_does_nothing() -> None:
    engine = Engine(journal=Journal())
    job = engine.submit(b"f", background=True)
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.complete(worker, job, b"")


def test_accepted_and_finished(engine: Engine, journal: RecordingJournal) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", payload=b"in", background=True)
    assert journal.calls == [("accepted", job.handle)]
    claim(engine, worker)
    assert len(journal.entries) == 1, "handing out is not written down: a crash hands out again"
    engine.complete(worker, job, b"out")
    last = journal.entries[-1]
    assert (last.what, last.state, last.result, last.worker) == ("finished", JobState.DONE, b"out", worker)
    assert len(journal.entries) == 2


def test_failures_are_finished_with_their_reason(engine: Engine, journal: RecordingJournal) -> None:
    worker = hire(engine, b"f")
    one, two = engine.submit(b"f", background=True), engine.submit(b"f", background=True)
    claim(engine, worker)
    claim(engine, worker)
    engine.fail(worker, one, "too hard")
    engine.raise_exception(worker, two, b"too \xff hard")
    assert [entry[5:] for entry in journal.entries[2:]] == [
        (JobState.FAILED, "too hard", b"", worker),
        (JobState.FAILED, "too \ufffd hard", b"too \xff hard", worker),
    ]


def test_a_lost_worker_is_journalled_as_changed_with_the_attempt_counted(
    engine: Engine, journal: RecordingJournal
) -> None:
    job = engine.submit(b"f", background=True)
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.now = NOW + 3
    engine.remove_worker(worker)
    last = journal.entries[-1]
    assert (last.what, last.attempts, last.state, last.run_at) == ("changed", 1, JobState.QUEUED, NOW + 3)
    assert journal.calls == [("accepted", job.handle), ("changed", job.handle)]


def test_a_dead_job_is_journalled_as_changed_with_the_reason(engine: Engine, journal: RecordingJournal) -> None:
    engine.policy.max_attempts = 1
    job = engine.submit(b"f", background=True)
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.remove_worker(worker)
    assert journal.calls == [("accepted", job.handle), ("changed", job.handle)]
    assert journal.entries[-1].state is JobState.DEAD
    assert "worker disconnected" in journal.entries[-1].reason


def test_a_retry_is_journalled_as_changed_and_a_deletion_as_finished(engine: Engine, journal: RecordingJournal) -> None:
    engine.policy.max_attempts = 1
    job = engine.submit(b"f", background=True)
    for _ in range(2):
        worker = hire(engine, b"f")
        claim(engine, worker)
        engine.remove_worker(worker)
        if job.state is JobState.DEAD and journal.names.count("changed") == 1:
            engine.retry(job)
            assert journal.entries[-1][4:7] == (0, JobState.QUEUED, "")
    engine.delete(job)
    assert journal.names == ["accepted", "changed", "changed", "changed", "finished"]
    assert (journal.entries[-1].state, journal.entries[-1].worker) == (JobState.CANCELLED, None)


def test_rescheduling_is_journalled_as_changed_with_the_new_time(engine: Engine, journal: RecordingJournal) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.fail(worker, job, retry=True)
    assert journal.entries[-1][:1] + journal.entries[-1][3:6] == ("changed", NOW + 1, 1, JobState.SCHEDULED)
    engine.tick(NOW + 1)
    claim(engine, worker)
    engine.reschedule(worker, job, NOW + 60)
    assert journal.entries[-1][:1] + journal.entries[-1][3:6] == ("changed", NOW + 60, 0, JobState.SCHEDULED)
    assert len(journal.entries) == 3, "coming due is not written down: the time says it"


def test_a_replaced_job_is_journalled_as_changed(engine: Engine, journal: RecordingJournal) -> None:
    old = engine.submit(b"f", b"key", b"old", background=True)
    engine.submit(b"f", b"key", b"new", background=True, duplicate=Duplicate.REPLACE)
    assert journal.calls == [("accepted", old.handle), ("changed", old.handle)]
    assert journal.entries[-1].payload == b"new"


def test_cancellation_is_journalled_as_finished(engine: Engine, journal: RecordingJournal) -> None:
    worker = hire(engine, b"f")
    queued = engine.submit(b"f", background=True)
    running = engine.submit(b"f", background=True)
    planned = engine.submit(b"f", background=True, run_at=NOW + 9)
    assert claim(engine, worker) is queued
    for job in (queued, running, planned):
        engine.cancel(job)
    ends = [(entry.handle, entry.state, entry.worker) for entry in journal.entries[3:]]
    assert ends == [
        (queued.handle, JobState.CANCELLED, worker),
        (running.handle, JobState.CANCELLED, None),
        (planned.handle, JobState.CANCELLED, None),
    ]


def test_coalescing_in_the_background_is_journalled_as_accepted_once(
    engine: Engine, journal: RecordingJournal, watcher: RecordingWatcher
) -> None:
    job = engine.submit(b"f", b"key", watcher=watcher)
    assert journal.names == []
    for _ in range(3):
        assert engine.submit(b"f", b"key", background=True) is job
    assert journal.calls == [("accepted", job.handle)]


def test_expiry_is_journalled_by_its_consequence(engine: Engine, journal: RecordingJournal) -> None:
    strict = hire(engine, b"f", timeout=5.0, on_timeout=Expiry.FAIL)
    kind = hire(engine, b"g", timeout=5.0, on_timeout=Expiry.REQUEUE)
    engine.submit(b"f", background=True)
    engine.submit(b"g", background=True)
    claim(engine, strict)
    claim(engine, kind)
    engine.tick(NOW + 5)
    assert [(entry.what, entry.worker) for entry in journal.entries[2:]] == [
        ("finished", strict),
        ("changed", None),
    ]


def test_foreground_jobs_are_not_journalled(engine: Engine, journal: RecordingJournal) -> None:
    engine.policy.max_attempts = 2
    watcher = RecordingWatcher()
    worker = hire(engine, b"f")
    ends = [
        lambda job: engine.complete(worker, job, b""),
        lambda job: engine.fail(worker, job),
        lambda job: engine.raise_exception(worker, job, b"oh"),
        lambda job: engine.reschedule(worker, job, NOW + 1),
        lambda job: engine.fail(worker, job, retry=True),
        lambda job: engine.cancel(job),
        lambda job: engine.remove_worker(worker),
    ]
    for end in ends:
        engine.submit(b"f", watcher=watcher)
        end(claim(engine, worker))
    replaced = engine.submit(b"f", b"key", watcher=watcher)
    engine.submit(b"f", b"key", watcher=watcher, duplicate=Duplicate.REPLACE)
    engine.tick(NOW + 100)
    assert engine.find(replaced.handle) is not None
    engine.unwatch_all(watcher)
    assert journal.entries == []


def test_a_dead_foreground_job_is_journalled_when_it_is_retried(
    engine: Engine, journal: RecordingJournal, watcher: RecordingWatcher
) -> None:
    engine.policy.max_attempts = 1
    job = engine.submit(b"f", watcher=watcher)
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.remove_worker(worker)
    assert journal.entries == []
    engine.retry(job)
    assert journal.calls == [("accepted", job.handle)]
    assert job.background


class DrainedJournal(Journal):
    """Notes down after which job it was told that the engine had drained."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.told: list[int] = []

    def drained(self) -> None:
        assert not self.engine.jobs
        self.told.append(self.engine.next_id - 1)


def test_drained_is_called_once_a_minute_while_one_job_runs_at_a_time(engine: Engine) -> None:
    journal = engine.journal = DrainedJournal(engine)
    worker = hire(engine, b"f")
    for step, seconds in enumerate((0.0, 30.0, 29.0, 1.0), start=1):
        engine.now += seconds
        for _ in range(10_001):
            engine.submit(b"f", b"key", background=True)
            engine.complete(worker, claim(engine, worker), b"")
        assert journal.told == [10_001, 30_004][: 1 if step < 4 else 2]


def test_drained_is_called_whenever_the_last_of_many_jobs_has_ended(engine: Engine) -> None:
    journal = engine.journal = DrainedJournal(engine)
    worker = hire(engine, b"f")
    for count in (10_100, 10_100, 500):
        for _ in range(count):
            engine.submit(b"f", background=True)
        for _ in range(count):
            engine.complete(worker, claim(engine, worker), b"")
    assert journal.told == [10_100, 20_200]
