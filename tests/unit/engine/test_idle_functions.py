"""Functions that nothing uses are forgotten after a while, or at once where another needs the room."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.idle_functions import IdleFunctions
from geartrain.engine.policy import Policy
from geartrain.errors import LimitError
from geartrain.model import JobState
from tests.unit.engine.recording import NOW, claim, hire

PERIOD = 40.0


@pytest.fixture
def engine() -> Engine:
    engine = Engine(Policy(max_attempts=1, max_functions=3, forget_functions_after=PERIOD))
    engine.now = NOW
    return engine


@pytest.fixture
def timer(engine: Engine) -> IdleFunctions:
    timer = IdleFunctions(engine)
    engine.timers.append(timer)
    return timer


def run(engine: Engine, seconds: float) -> None:
    """Let time pass, with a tick whenever the engine asks for one."""
    end = engine.now + seconds
    while (deadline := engine.deadline()) <= end:
        engine.tick(max(deadline, engine.now))
    engine.tick(end)


def test_an_unused_function_is_forgotten_after_the_period(engine: Engine, timer: IdleFunctions) -> None:
    engine.function(b"f")
    run(engine, PERIOD)
    assert b"f" in engine.functions
    run(engine, PERIOD / 2)
    assert b"f" not in engine.functions


def test_what_is_used_is_kept(engine: Engine, timer: IdleFunctions) -> None:
    engine.policy.max_functions = 10
    engine.submit(b"queued", background=True)
    engine.submit(b"scheduled", run_at=NOW + 1e6)
    hire(engine, b"offered")
    engine.pause(b"paused")
    engine.limit(b"limited", 1, 1, 1)
    engine.function(b"named")
    engine.kept_functions[b"named"] = 1
    engine.submit(b"dead", background=True)
    worker = hire(engine, b"dead")
    job = claim(engine, worker)
    engine.remove_worker(worker)
    assert job.state is JobState.DEAD
    before = set(engine.functions)
    run(engine, 3 * PERIOD)
    assert set(engine.functions) == before
    engine.resume(b"paused")
    engine.delete(job)
    run(engine, 2 * PERIOD)
    assert before - set(engine.functions) == {b"paused", b"dead"}


def test_a_job_that_ends_between_two_visits_begins_a_new_period(engine: Engine, timer: IdleFunctions) -> None:
    for _ in range(10):
        engine.cancel(engine.submit(b"f", background=True))
        run(engine, PERIOD * 0.9)
    assert b"f" in engine.functions


def test_the_counters_of_forgotten_functions_are_added_up(engine: Engine, timer: IdleFunctions) -> None:
    for name in (b"f", b"g"):
        engine.cancel(engine.submit(name, background=True))
    run(engine, 2 * PERIOD)
    assert engine.functions == {}
    assert (engine.forgotten.outcomes.cancelled, engine.forgotten.submitted) == (2, 2)
    engine.cancel(engine.submit(b"f", background=True))
    assert engine.drop(b"f")
    assert engine.forgotten.submitted == engine.submitted == 3


def test_a_clock_that_is_set_back_stops_nothing(engine: Engine, timer: IdleFunctions) -> None:
    engine.function(b"f")
    run(engine, PERIOD / 2)
    engine.now -= 500.0
    engine.tick(engine.now)
    run(engine, 2 * PERIOD)
    assert b"f" not in engine.functions


def test_very_many_functions_are_visited_in_slices(engine: Engine, timer: IdleFunctions) -> None:
    engine.policy.max_functions = 5000
    for number in range(2500):
        engine.function(b"%d" % number)
    engine.tick(NOW + PERIOD / 4)
    assert timer.at < NOW + PERIOD / 4 + 1, "the rest of the round follows soon"
    run(engine, 2 * PERIOD)
    assert engine.functions == {}


def test_unused_functions_make_room_for_a_new_one(engine: Engine) -> None:
    engine.submit(b"f", background=True)
    for name in (b"g", b"h", b"i"):
        engine.function(name)
    assert list(engine.functions) == [b"f", b"i"]
    engine.function(b"j")
    with pytest.raises(LimitError):
        engine.function(b"k")  # all functions were visited just now
    engine.now += 1.0
    engine.function(b"k")
    assert list(engine.functions) == [b"f", b"k"]


def test_functions_that_are_kept_for_ever_make_no_room(engine: Engine) -> None:
    engine.policy.forget_functions_after = 0.0
    timer = IdleFunctions(engine)
    engine.timers.append(timer)
    for name in (b"f", b"g", b"h"):
        engine.function(name)
    with pytest.raises(LimitError):
        engine.function(b"i")
    run(engine, 10.0)
    assert len(engine.functions) == 3
