"""A function counts its jobs and lists them in order."""

from geartrain.engine.engine import Engine
from geartrain.engine.function import UNLIMITED, Function
from geartrain.model import Priority
from tests.unit.engine.recording import NOW, claim, hire


def test_a_new_function_has_nothing() -> None:
    function = Function(b"f")
    assert (function.queued, function.total, function.running, function.scheduled) == (0, 0, 0, 0)
    assert (function.workers, list(function.idle_crews)) == (0, [])
    assert function.limits == (UNLIMITED,) * 3
    assert not function.paused
    assert not function.broadcast
    assert list(function.queued_jobs()) == []


def test_the_counters_follow_the_jobs(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f", priority=Priority.LOW, background=True)
    engine.submit(b"f", priority=Priority.HIGH, background=True)
    engine.submit(b"f", run_at=NOW + 5, background=True)
    f = engine.functions[b"f"]
    assert (f.queued, f.running, f.scheduled, f.total, f.workers) == (2, 0, 1, 3, 1)
    job = claim(engine, worker)
    assert (f.queued, f.running, f.scheduled, f.total) == (1, 1, 1, 3)
    engine.complete(worker, job, b"")
    assert (f.queued, f.running, f.scheduled, f.total) == (1, 0, 1, 2)
    engine.tick(NOW + 5)
    assert (f.queued, f.running, f.scheduled, f.total) == (2, 0, 0, 2)


def test_queued_jobs_are_listed_in_the_order_of_assignment(engine: Engine) -> None:
    for payload, priority, run_at in (
        (b"low", Priority.LOW, 0.0),
        (b"normal", Priority.NORMAL, 0.0),
        (b"ahead", Priority.NORMAL, NOW - 10),
        (b"high", Priority.HIGH, 0.0),
        (b"later", Priority.HIGH, NOW + 10),
    ):
        engine.submit(b"f", payload=payload, priority=priority, run_at=run_at, background=True)
    listed = [job.payload for job in engine.functions[b"f"].queued_jobs()]
    assert listed == [b"high", b"ahead", b"normal", b"low"]
    worker = hire(engine, b"f")
    assert [claim(engine, worker).payload for _ in range(4)] == listed
    assert engine.claim(worker) is None
