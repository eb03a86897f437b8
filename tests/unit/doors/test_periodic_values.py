"""The configuration values, and the first times of functions."""

from collections.abc import Iterator

import pytest

from geartrain.doors.periodic.calendar import Calendar
from geartrain.doors.periodic.config import DEFAULTS, Config
from geartrain.engine.agenda import Schedule
from geartrain.engine.engine import Engine, SilentWorker
from geartrain.engine.job import LiveJob


class TestConfig:
    def test_kept_values_are_in_force(self) -> None:
        config = Config({"periodic.timeout": b"7", "timeout": b"8", "periodic.nonsense": b"9"}, lambda *_: None)
        assert config.get(b"timeout") == 7
        assert config.get(b"nonsense") == 0

    @pytest.mark.parametrize("value", [b"", b"-1", b"x", b"1.5", "٣".encode(), b"9" * 30])
    def test_kept_values_that_make_no_sense(self, value: bytes) -> None:
        found = Config({"periodic.timeout": value}, lambda *_: None).get(b"timeout")
        assert found in (DEFAULTS[b"timeout"], 2**32 - 1)

    def test_what_is_set_is_kept_under_its_new_name(self) -> None:
        kept: dict[str, bytes] = {}
        config = Config({}, kept.__setitem__)
        assert config.set(b"max-patch", 5)
        assert not config.set(b"unheard-of", 5)
        assert kept == {"periodic.max-batch-size": b"5"}
        assert Config(kept, lambda *_: None).get(b"max-patch") == 5


class TestCalendar:
    def test_first_times(self) -> None:
        engine = Engine()
        engine.now = 1000.0
        calendar = Calendar(engine)
        engine.enroll(SilentWorker("test"), b"f")
        function = engine.functions[b"f"]
        assert calendar.first(function) is None
        for run_at in (3000.0, 2000.0):
            engine.submit(b"f", background=True, run_at=run_at)
            engine.now += 1.0
            assert calendar.first(function) == run_at
        engine.submit(b"f", background=True, run_at=5.0)
        engine.submit(b"f", background=True)
        assert calendar.first(function) == 5.0

    def test_a_function_that_was_not_there_at_the_last_look(self) -> None:
        engine = Engine()
        engine.now = 1000.0
        calendar = Calendar(engine)
        for name in (b"f", b"g"):
            engine.submit(name, background=True, run_at=2000.0)
            assert calendar.first(engine.functions[name]) == 2000.0

    def test_a_long_schedule_is_not_gone_through_each_time(self) -> None:
        engine = Engine()
        engine.now = 1000.0
        schedule = engine.schedule = Counted()
        calendar = Calendar(engine)
        for number in range(10_000):
            engine.submit(b"f", background=True, run_at=2000.0 + number)
        for _ in range(1000):
            engine.now += 0.001
            assert calendar.first(engine.functions[b"f"]) == 2000.0
        assert 1 <= schedule.looks <= 21  # 10,000 jobs are looked at every 50 milliseconds


class Counted(Schedule):
    """Knows how often it was gone through."""

    __slots__ = ("looks",)

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def standing(self) -> Iterator[tuple[float, LiveJob]]:
        self.looks += 1
        return super().standing()
