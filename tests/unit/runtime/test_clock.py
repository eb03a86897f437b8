"""The clock follows the wall clock, and never its jitter."""

import time

import pytest

from geartrain.engine.engine import Engine, PollingWorker
from geartrain.model import JobState
from geartrain.runtime.clock import Clock


class Hands:
    """Two clocks that a test can turn."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self.monotonic = 500.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.monotonic)


def test_real_clock_tells_the_time_and_never_goes_back() -> None:
    before = time.time()
    clock = Clock()
    assert before - 1 < clock() < time.time() + 1
    times = [clock() for _ in range(10_000)]
    assert times == sorted(times)


@pytest.mark.parametrize("first", [0, 1, 2, 3, 4, 5, 6, 7])
def test_an_interruption_at_the_start_does_no_harm(first: int) -> None:
    """Servers of one machine have one time, although each may be interrupted while it reads the clocks."""
    hands = Hands()
    readings = iter(range(100))

    def read(clock: str) -> float:
        now: float = getattr(hands, clock)
        hands.pass_by(0.5 if next(readings) == first else 0.0)
        return now

    clock = Clock(lambda: read("wall"), lambda: read("monotonic"))
    hands.pass_by(1.0)
    assert clock() == pytest.approx(hands.wall)


def test_time_passes() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.pass_by(0.25)
    assert clock() == 1_800_000_000.25
    hands.pass_by(3600)
    assert clock() == 1_800_003_600.25


@pytest.mark.parametrize("step", [-1.0, -0.3, 0.3, 1.0])
def test_small_corrections_are_left_alone(step: float, caplog: pytest.LogCaptureFixture) -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall += step
    hands.pass_by(10)
    assert clock() == 1_800_000_010.0
    assert not caplog.records


@pytest.mark.parametrize(("step", "shown"), [(-3600.0, "-3600.000"), (1.5, "+1.500")])
def test_moved_clock_is_followed_and_logged(step: float, shown: str, caplog: pytest.LogCaptureFixture) -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall += step
    hands.pass_by(2)
    assert clock() == 1_800_000_002.0 + step
    hands.pass_by(5)
    assert clock() == 1_800_000_007.0 + step
    [record] = caplog.records
    assert record.getMessage() == "wall clock changed"
    assert record.fields == {"seconds": shown}  # type: ignore[attr-defined]


def test_wall_clock_is_read_once_a_second_at_most() -> None:
    readings = 0
    hands = Hands()

    def wall() -> float:
        nonlocal readings
        readings += 1
        return hands.wall

    clock = Clock(wall, lambda: hands.monotonic)
    at_start = readings
    for _ in range(100):
        hands.pass_by(0.0625)
        clock()
    assert readings == at_start + 6


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_step_fails_no_running_job(step: float) -> None:
    hands = Hands()
    clock = hands.clock()
    engine = Engine()
    clock.on_step = engine.clock_moved
    engine.now = clock()
    worker = PollingWorker("test")
    engine.register(worker, b"f", timeout=10.0)
    job = engine.submit(b"f", background=True)
    assert engine.claim(worker) is job
    hands.wall += step
    for seconds, state in ((5.0, JobState.RUNNING), (4.9, JobState.RUNNING), (0.2, JobState.FAILED)):
        hands.pass_by(seconds)
        engine.tick(clock())
        assert job.state is state
