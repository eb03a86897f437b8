"""Delays grow up to a cap and are spread by jitter."""

import pytest

from geartrain import backoff
from geartrain.backoff import Backoff, ReconnectDelay

STEADY = Backoff(base=1, factor=2, cap=8, jitter=False)


def test_delays_grow_up_to_the_cap() -> None:
    assert [STEADY.after(attempt) for attempt in range(1, 7)] == [1, 2, 4, 8, 8, 8]


def test_the_delay_after_very_many_attempts_is_the_cap() -> None:
    assert Backoff(jitter=False).after(100_000) == 600


def test_no_failure_counts_as_one() -> None:
    assert backoff.delay(0, base=2, cap=10) == backoff.delay(1, base=2, cap=10) == 2


def test_jitter_draws_from_zero_to_the_bound() -> None:
    drawn: list[tuple[float, float]] = []
    Backoff(base=3, factor=2).after(2, lambda low, high: drawn.append((low, high)) or 0.0)
    assert drawn == [(0.0, 6.0)]


def test_jitter_spreads() -> None:
    delays = {Backoff(base=10).after(1) for _ in range(50)}
    assert len(delays) > 10
    assert all(0 <= delay <= 10 for delay in delays)


@pytest.mark.parametrize("wrong", [{"base": -1}, {"factor": 0.5}, {"cap": -1}])
def test_a_backoff_outside_its_bounds_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a backoff needs"):
        Backoff(**wrong)


def test_reconnect_delays_double_up_to_the_cap_within_their_jitter() -> None:
    delay = ReconnectDelay(first=1.0, cap=10.0)
    for due in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        assert due / 2 <= delay.next() <= due


def test_reconnect_delays_of_two_programs_differ() -> None:
    assert len({ReconnectDelay().next() for _ in range(20)}) > 1


def test_reset_begins_with_the_first_delay() -> None:
    delay = ReconnectDelay(first=1.0, cap=10.0)
    for _ in range(2000):  # so many that a plain power would overflow
        assert delay.next() <= 10.0
    delay.reset()
    assert delay.next() <= 1.0
