"""The events that observers receive, for foreground and background jobs alike."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Observer
from geartrain.engine.job import LiveJob, Progress
from geartrain.model import Duplicate, JobState
from tests.unit.engine.recording import NOW, RecordingWatcher, claim, hire


class RecordingObserver(Observer):
    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def created(self, job: LiveJob) -> None:
        self.heard.append(("created", job.handle))

    def started(self, job: LiveJob) -> None:
        assert job.state is JobState.RUNNING
        self.heard.append(("started", job.handle))

    def finished(self, job: LiveJob, result: bytes) -> None:
        self.heard.append(("finished", job.handle, job.state, result))


@pytest.fixture
def observer(engine: Engine) -> RecordingObserver:
    engine.observer = observer = RecordingObserver()
    return observer


def test_the_base_class_does_nothing(engine: Engine) -> None:
    engine.observer = Observer()
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.complete(worker, job, b"")
    assert job.state is JobState.DONE


@pytest.mark.parametrize("background", [False, True])
def test_a_job_is_created_started_and_finished(engine: Engine, observer: RecordingObserver, background: bool) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=background, watcher=RecordingWatcher())
    claim(engine, worker)
    engine.complete(worker, job, b"out")
    handle = job.handle
    assert observer.heard == [
        ("created", handle),
        ("started", handle),
        ("finished", handle, JobState.DONE, b"out"),
    ]


def test_coalescing_and_replacing_are_not_created_events(engine: Engine, observer: RecordingObserver) -> None:
    job = engine.submit(b"f", b"key", background=True)
    engine.submit(b"f", b"key", background=True)
    engine.submit(b"f", b"key", background=True, duplicate=Duplicate.REPLACE)
    assert observer.heard == [("created", job.handle)]


def test_a_lost_worker_leads_to_a_second_started_event(engine: Engine, observer: RecordingObserver) -> None:
    job = engine.submit(b"f", background=True)
    for _ in range(2):
        worker = hire(engine, b"f")
        claim(engine, worker)
        engine.remove_worker(worker)
    assert observer.heard == [("created", job.handle), ("started", job.handle), ("started", job.handle)]


def test_every_job_has_one_finished_event(engine: Engine, observer: RecordingObserver) -> None:
    engine.policy.max_attempts = 1
    watcher = RecordingWatcher()
    worker = hire(engine, b"f")
    ends = []
    for end in ("fail", "exception", "cancel", "abandon", "die"):
        job = engine.submit(b"f", watcher=watcher)
        if end == "abandon":
            engine.unwatch_all(watcher)
        else:
            claim(engine, worker)
        if end == "fail":
            engine.fail(worker, job)
        elif end == "exception":
            engine.raise_exception(worker, job, b"oh")
        elif end == "cancel":
            engine.cancel(job)
        elif end == "die":
            engine.remove_worker(worker)
        ends.append([words[2:] for words in observer.heard if words[:2] == ("finished", job.handle)])
    assert ends == [
        [(JobState.FAILED, b"")],
        [(JobState.FAILED, b"oh")],
        [(JobState.CANCELLED, b"")],
        [(JobState.CANCELLED, b"")],
        [(JobState.DEAD, b"")],
    ]


class Everything(RecordingObserver):
    def progress(self, job: LiveJob, progress: Progress) -> None:
        self.heard.append(("progress", job.handle, progress))

    def requeued(self, job: LiveJob, why: str) -> None:
        self.heard.append(("requeued", job.handle, why))

    def rescheduled(self, job: LiveJob, why: str) -> None:
        self.heard.append(("rescheduled", job.handle, why))


def test_requeued_and_rescheduled_events_have_reasons(engine: Engine) -> None:
    observer = Everything()
    engine.subscribe(observer)
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.progress(job, Progress(1, 2))
    engine.remove_worker(worker)
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.fail(worker, job, "not today", retry=True)
    engine.tick(job.run_at)
    claim(engine, worker)
    engine.mark_dead(job, "hopeless")
    engine.retry(job)
    assert [words[0] for words in observer.heard] == [
        "created", "started", "progress", "requeued", "started", "rescheduled", "started", "finished", "requeued",
    ]  # fmt: skip
    assert [words[2] for words in observer.heard if words[0] in ("requeued", "rescheduled")] == [
        "worker disconnected", "not today", "retried",
    ]  # fmt: skip


def test_several_observers_can_subscribe_and_unsubscribe(engine: Engine) -> None:
    first, second = RecordingObserver(), RecordingObserver()
    engine.subscribe(first)
    one = engine.submit(b"f")
    engine.subscribe(second)
    two = engine.submit(b"f")
    engine.unsubscribe(first)
    three = engine.submit(b"f")
    engine.unsubscribe(second)
    assert engine.observer is None
    assert [words[1] for words in first.heard] == [one.handle, two.handle]
    assert [words[1] for words in second.heard] == [two.handle, three.handle]


def test_a_group_passes_every_event_on(engine: Engine) -> None:
    members = [Everything(), Everything()]
    for member in members:
        engine.subscribe(member)
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.progress(job, Progress(1, 2))
    engine.reschedule(worker, job, NOW + 1)
    engine.tick(NOW + 1)
    claim(engine, worker)
    engine.remove_worker(worker)
    engine.cancel(job)
    assert members[0].heard == members[1].heard
    assert [words[0] for words in members[0].heard] == [
        "created", "started", "progress", "rescheduled", "started", "requeued", "finished",
    ]  # fmt: skip


def test_a_broadcast_has_the_events_of_one_job(engine: Engine, observer: RecordingObserver) -> None:
    workers = [hire(engine, b"b", broadcast=True, asleep=True) for _ in range(3)]
    job = engine.submit(b"b", background=True, run_at=NOW)
    for worker in workers:
        claim(engine, worker)
    engine.complete(workers[0], job, b"")
    assert [words[0] for words in observer.heard] == ["created", "started", "finished"]
