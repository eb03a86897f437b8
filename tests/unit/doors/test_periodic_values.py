"""The configuration values, and the first times of functions."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.doors.periodic.config import DEFAULTS, PeriodicConfig
from geartrain.doors.periodic.first_due import FirstDueTimes
from geartrain.engine.deadlines import ScheduledJobs
from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.job import LiveJob


class TestConfig:
    def test_kept_values_are_in_force(self) -> None:
        config = PeriodicConfig({"periodic.timeout": b"7", "timeout": b"8", "periodic.nonsense": b"9"}, lambda *_: None)
        assert config.get(b"timeout") == 7
        assert config.get(b"nonsense") == 0

    @pytest.mark.parametrize("value", [b"", b"-1", b"x", b"1.5", "٣".encode(), b"9" * 30])
    def test_kept_values_that_make_no_sense(self, value: bytes) -> None:
        found = PeriodicConfig({"periodic.timeout": value}, lambda *_: None).get(b"timeout")
        assert found in (DEFAULTS[b"timeout"], 2**32 - 1)

    def test_what_is_set_is_kept_under_its_new_name(self) -> None:
        kept: dict[str, bytes] = {}
        config = PeriodicConfig({}, kept.__setitem__)
        assert config.set(b"max-patch", 5)
        assert not config.set(b"unheard-of", 5)
        assert kept == {"periodic.max-batch-size": b"5"}
        assert PeriodicConfig(kept, lambda *_: None).get(b"max-patch") == 5

    def test_values_of_a_dump(self) -> None:
        kept: dict[str, bytes] = {}
        config = PeriodicConfig({}, kept.__setitem__)
        assert config.load("periodic.timeout", b"7", replace=False) == (True, False)
        assert config.load("periodic.timeout", b"8", replace=False) == (False, True)
        assert config.get(b"timeout") == 7
        assert config.load("periodic.timeout", b"8", replace=True) == (True, True)
        for name, value in (("periodic.timeout", b"x"), ("periodic.unheard-of", b"9")):
            assert config.load(name, value, replace=True)[0] is False
        assert kept == {"periodic.timeout": b"8"}


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.now = 1000.0
    engine.schedule = Counted()
    return engine


class Counted(ScheduledJobs):
    """Knows how often all of it was gone through."""

    __slots__ = ("scans",)

    def __init__(self) -> None:
        super().__init__()
        self.scans = 0

    def entries(self) -> Iterator[tuple[float, LiveJob]]:
        self.scans += 1
        return super().entries()


def first(times: FirstDueTimes, engine: Engine, function: bytes = b"f") -> float | None:
    times.refresh()
    return times.of(engine.functions[function])


class TestFirstDueTimes:
    def test_first_times(self, engine: Engine) -> None:
        times = FirstDueTimes(engine)
        engine.register(PollingWorker("test"), b"f")
        assert first(times, engine) is None
        for run_at in (3000.0, 2000.0):
            engine.submit(b"f", background=True, run_at=run_at)
            assert first(times, engine) == run_at
        engine.submit(b"f", background=True, run_at=5.0)
        engine.submit(b"f", background=True)
        assert first(times, engine) == 5.0

    def test_a_cancelled_job_is_no_longer_the_first(self, engine: Engine) -> None:
        times = FirstDueTimes(engine)
        jobs = [engine.submit(b"f", background=True, run_at=run_at) for run_at in (2000.0, 3000.0)]
        assert first(times, engine) == 2000.0
        engine.cancel(jobs[0])
        assert first(times, engine) == 3000.0

    def test_a_long_schedule_is_not_gone_through(self, engine: Engine) -> None:
        times = FirstDueTimes(engine)
        for number in range(10_000):
            engine.submit(b"%d" % (number % 10), background=True, run_at=20_000.0 - number)
        assert [first(times, engine, b"%d" % number) for number in range(10)] == [
            10_010.0 - number for number in range(10)
        ]
        assert engine.schedule.scans == 0  # type: ignore[attr-defined]

    def test_or_not_each_time(self, engine: Engine) -> None:
        """A function whose jobs stand behind very many of another."""
        times = FirstDueTimes(engine)
        for number in range(10_000):
            engine.submit(b"f", background=True, run_at=2000.0 + number)
        engine.submit(b"last", background=True, run_at=50_000.0)
        for _ in range(1000):
            engine.now += 0.001
            assert first(times, engine) == 2000.0
            assert first(times, engine, b"last") == 50_000.0
        assert 1 <= engine.schedule.scans <= 21  # type: ignore[attr-defined]
        engine.submit(b"later still", background=True, run_at=60_000.0)
        assert first(times, engine, b"later still") == 60_000.0


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans())))
def test_the_schedule_in_order(entries: list[tuple[int, bool]]) -> None:
    engine = Engine()
    jobs = [engine.submit(b"f", background=True, run_at=1.0 + when) for when, _ in entries]
    for job, (_, cancelled) in zip(jobs, entries, strict=True):
        if cancelled:
            engine.cancel(job)
    assert [job for _, job in engine.schedule.soonest_first()] == engine.schedule.jobs()
    assert sorted(engine.schedule.soonest_first()) == sorted(engine.schedule.entries())
