"""The calls that a watcher receives, and verbs that it calls from them."""

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.model import JobState
from tests.unit.engine.recording import NOW, RecordingWatcher, claim, hire


def test_the_base_class_does_nothing(engine: Engine) -> None:
    deaf = Watcher()
    worker = hire(engine, b"f")
    for end in (engine.complete, engine.raise_exception):
        job = engine.submit(b"f", watcher=deaf)
        claim(engine, worker)
        engine.progress(job, Progress(1, 2))
        engine.data(job, b"part")
        engine.warning(job, b"careful")
        end(worker, job, b"")
    engine.cancel(engine.submit(b"f", watcher=deaf))
    assert deaf.watching == set()


def test_progress_data_and_warnings_come_before_the_end(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    assert watcher.watching == {job}
    claim(engine, worker)
    half = Progress(1, 2)
    engine.progress(job, half)
    engine.data(job, b"part")
    engine.warning(job, b"careful")
    assert job.progress == half
    engine.complete(worker, job, b"result")
    assert watcher.words == [
        ("progress", half),
        ("data", b"part"),
        ("warning", b"careful"),
        ("complete", b"result"),
    ]
    assert [heard.state for heard in watcher.heard] == [JobState.RUNNING] * 3 + [JobState.DONE]
    assert watcher.watching == set()
    assert job.watchers is None


def test_watchers_are_called_in_the_order_in_which_they_were_added(engine: Engine) -> None:
    order: list[str] = []
    watchers = [RecordingWatcher() for _ in range(3)]
    for name, watcher in zip("abc", watchers, strict=True):
        watcher.react = lambda what, job, name=name: order.append(name + what)  # type: ignore[misc]
    job = engine.submit(b"f", b"key", watcher=watchers[0])
    engine.submit(b"f", b"key", watcher=watchers[1])
    engine.watch(job, watchers[2])
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.data(job, b"")
    engine.complete(worker, job, b"")
    assert order == ["adata", "bdata", "cdata", "acomplete", "bcomplete", "ccomplete"]


def test_a_watcher_that_submitted_twice_is_called_twice_and_removed_once(
    engine: Engine, watcher: RecordingWatcher
) -> None:
    job = engine.submit(b"f", b"key", watcher=watcher)
    engine.submit(b"f", b"key", watcher=watcher)
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.data(job, b"part")
    assert watcher.words == [("data", b"part")] * 2
    engine.unwatch(job, watcher)
    assert job.watchers is None
    engine.complete(worker, job, b"")
    assert len(watcher.heard) == 2


def test_a_job_without_watchers(engine: Engine) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.progress(job, Progress(1, 2))
    engine.data(job, b"part")
    engine.warning(job, b"careful")
    engine.raise_exception(worker, job, b"oh")
    assert job.state is JobState.FAILED


def test_a_watcher_may_submit_a_job_from_complete(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    submitted: list[LiveJob] = []

    def again(what: str, job: LiveJob) -> None:
        if len(submitted) < 3:
            submitted.append(engine.submit(b"f", b"key", watcher=watcher))

    watcher.react = again
    job = engine.submit(b"f", b"key", watcher=watcher)
    for end in (
        lambda job: engine.complete(worker, job, b""),
        lambda job: engine.fail(worker, job),
        lambda job: engine.cancel(job),
    ):
        assert claim(engine, worker) is job
        end(job)
        job = submitted[-1]
        assert job.state is JobState.QUEUED
    assert len({job.handle for job in submitted}) == 3


def test_a_watcher_may_unwatch_from_a_call(engine: Engine, watcher: RecordingWatcher) -> None:
    other = RecordingWatcher()
    worker = hire(engine, b"f")
    job = engine.submit(b"f", b"key", watcher=watcher)
    engine.submit(b"f", b"key", watcher=other)
    claim(engine, worker)
    watcher.react = lambda what, job: engine.unwatch_all(watcher)
    engine.data(job, b"one")
    engine.data(job, b"two")
    assert watcher.words == [("data", b"one")]
    assert other.words == [("data", b"one"), ("data", b"two")]


def test_a_watcher_may_cancel_the_other_jobs_of_a_lost_worker(engine: Engine, watcher: RecordingWatcher) -> None:
    engine.policy.max_attempts = 1
    worker = hire(engine, b"f")
    one, two = engine.submit(b"f", watcher=watcher), engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    claim(engine, worker)

    def cancel_the_other(what: str, job: LiveJob) -> None:
        if job is one:
            engine.cancel(two)

    watcher.react = cancel_the_other
    engine.remove_worker(worker)
    assert (one.state, two.state) == (JobState.DEAD, JobState.CANCELLED)
    assert (engine.running, worker.running.jobs(), list(engine.jobs)) == (0, [], [])


def test_a_watcher_may_cancel_the_other_jobs_of_an_unregistered_function(
    engine: Engine, watcher: RecordingWatcher
) -> None:
    engine.policy.max_attempts = 1
    worker = hire(engine, b"f")
    jobs = [engine.submit(b"f", watcher=watcher) for _ in range(2)]
    claim(engine, worker)
    claim(engine, worker)
    watcher.react = lambda what, job: [engine.cancel(other) for other in jobs if other.owner is worker]
    engine.unregister(worker, b"f")
    assert [job.state for job in jobs] == [JobState.DEAD, JobState.CANCELLED]


def test_a_watcher_may_cancel_other_jobs_whose_leases_expire_too(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    jobs = [engine.submit(b"f", watcher=watcher) for _ in range(3)]
    for _ in jobs:
        claim(engine, worker)
    watcher.react = lambda what, job: [engine.cancel(other) for other in jobs if other.owner is worker]
    engine.tick(NOW + 5)
    assert [job.state for job in jobs] == [JobState.FAILED, JobState.CANCELLED, JobState.CANCELLED]
    assert sorted(worker.taken) == sorted(job.handle for job in jobs)
