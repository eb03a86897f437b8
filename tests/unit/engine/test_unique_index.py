"""The index of unique keys: by function, and over all functions."""

from geartrain.engine.engine import Engine
from geartrain.engine.unique_index import UniqueIndex
from tests.unit.engine.recording import NOW, RecordingWatcher, claim, hire


def test_a_new_index_is_empty() -> None:
    index = UniqueIndex()
    assert len(index) == 0
    assert index.get(b"f", b"key") is None
    assert index.newest(b"key") is None


def test_unique_keys_of_waiting_and_running_jobs_are_known(engine: Engine) -> None:
    watcher = RecordingWatcher()
    worker = hire(engine, b"f")
    waiting = engine.submit(b"f", b"w", watcher=watcher, run_at=NOW + 1)
    running = engine.submit(b"f", b"r", watcher=watcher)
    assert claim(engine, worker) is running
    index = engine.unique_jobs
    assert (index.get(b"f", b"w"), index.get(b"f", b"r"), len(index)) == (waiting, running, 2)
    assert index.get(b"g", b"w") is None, "a key belongs to a function"
    engine.complete(worker, running, b"")
    engine.unwatch_all(watcher)
    assert len(index) == 0


def test_jobs_without_a_key_are_not_indexed(engine: Engine) -> None:
    engine.submit(b"f", background=True)
    assert len(engine.unique_jobs) == 0


def test_a_key_of_several_functions_has_a_job_in_each(engine: Engine) -> None:
    names = [b"f", b"g", b"h"]
    jobs = [engine.submit(name, b"key", background=True) for name in names]
    index = engine.unique_jobs
    assert [index.get(name, b"key") for name in names] == jobs
    assert index.get(b"i", b"key") is None
    assert len(index) == 3
    for number in (2, 0):
        assert index.newest(b"key") is jobs[2 if number == 2 else 1]
        engine.cancel(jobs[number])
        assert index.get(names[number], b"key") is None
    assert index.newest(b"key") is jobs[1]
    again = engine.submit(b"f", b"key", background=True)
    assert again is not jobs[0]
    assert (index.newest(b"key"), index.get(b"f", b"key"), index.get(b"g", b"key")) == (again, again, jobs[1])
    engine.cancel(again)
    engine.cancel(jobs[1])
    assert len(index) == 0
    assert index.newest(b"key") is None


def test_shrinking_keeps_the_jobs(engine: Engine) -> None:
    jobs = [engine.submit(name, key, background=True) for name, key in ((b"f", b"a"), (b"f", b"b"), (b"g", b"b"))]
    engine.unique_jobs.shrink()
    assert [engine.unique_jobs.get(job.function, job.unique) for job in jobs] == jobs


def test_the_newest_is_found_without_looking_at_other_functions(engine: Engine) -> None:
    """Functions are not even iterated, so that the cost does not depend on their number."""
    job = engine.submit(b"f", b"key", background=True)
    functions, engine.functions = engine.functions, {}
    assert engine.find_unique(b"key") is job
    engine.functions = functions
