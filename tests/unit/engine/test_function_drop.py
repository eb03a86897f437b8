"""Dropping a function with its jobs in slices, and what comes in between."""

from geartrain.engine.engine import Engine
from geartrain.engine.function_drop import FunctionDrop
from geartrain.model import JobState
from tests.unit.engine.recording import NOW, RecordingWatcher, claim, hire


def fill(engine: Engine, count: int, function: bytes = b"f") -> None:
    for number in range(count):
        engine.submit(function, background=True, run_at=NOW + 9 if number % 2 else 0.0)


def run(drop: FunctionDrop) -> int:
    """Carry a drop out, and return its number of slices."""
    slices = 1
    while not drop.step():
        slices += 1
    return slices


def test_all_waiting_jobs_are_cancelled_and_the_function_is_removed(engine: Engine) -> None:
    fill(engine, 1000)
    fill(engine, 3, b"g")
    assert run(FunctionDrop(engine, b"f")) > 3
    assert list(engine.functions) == [b"g"]
    assert len(engine.jobs) == 3


def test_a_slice_is_small(engine: Engine) -> None:
    fill(engine, 1000)
    assert not FunctionDrop(engine, b"f").step()
    assert 500 < len(engine.jobs) < 1000


def test_jobs_that_are_submitted_meanwhile_stay(engine: Engine) -> None:
    fill(engine, 1000)
    drop = FunctionDrop(engine, b"f")
    drop.step()
    late = engine.submit(b"f", background=True)
    run(drop)
    assert list(engine.jobs.values()) == [late]
    assert list(engine.functions) == [b"f"]


def test_a_worker_that_comes_meanwhile_gets_what_is_left(engine: Engine) -> None:
    fill(engine, 1000)
    drop = FunctionDrop(engine, b"f")
    drop.step()
    left = len(engine.jobs)
    worker = hire(engine, b"f")
    claim(engine, worker)
    assert drop.step()
    assert len(engine.jobs) == left


def test_two_drops_at_once(engine: Engine) -> None:
    fill(engine, 1000)
    one, two = FunctionDrop(engine, b"f"), FunctionDrop(engine, b"f")
    while not one.step():
        two.step()
    engine.function(b"f")
    assert two.step(), "the function of that name is another one now"
    assert list(engine.functions) == [b"f"]


def test_a_running_job_stays_and_keeps_the_function(engine: Engine) -> None:
    worker = hire(engine, b"f")
    fill(engine, 10)
    running = claim(engine, worker)
    drop = FunctionDrop(engine, b"f")
    assert drop.step(), "a worker offers it"
    assert len(engine.jobs) == 10
    assert running.state is JobState.RUNNING


def test_a_watcher_may_cancel_other_jobs(engine: Engine, watcher: RecordingWatcher) -> None:
    jobs = [engine.submit(b"f", watcher=watcher) for _ in range(5)]

    def cancel_all(what: str, job: object) -> None:
        for other in jobs:
            if engine.find(other.handle) is not None:
                engine.cancel(other)

    watcher.react = cancel_all
    run(FunctionDrop(engine, b"f"))
    assert engine.functions == {}


def test_an_unknown_function(engine: Engine) -> None:
    assert FunctionDrop(engine, b"f").step()
