"""The delay between attempts doubles up to a maximum."""

import pytest

from geartrain.engine.policy import Policy


def test_the_delay_doubles_with_every_attempt() -> None:
    policy = Policy(retry_delay=1.5)
    assert [policy.delay_after(attempts) for attempts in (1, 2, 3, 4)] == [1.5, 3.0, 6.0, 12.0]


def test_the_delay_stops_at_the_maximum() -> None:
    policy = Policy(retry_delay=1.0, retry_delay_max=10.0)
    assert policy.delay_after(4) == 8.0
    assert policy.delay_after(5) == 10.0
    assert policy.delay_after(6) == 10.0


@pytest.mark.parametrize("attempts", [33, 34, 1000, 10**9])
def test_any_number_of_attempts_has_a_delay(attempts: int) -> None:
    assert Policy(retry_delay=1.0, retry_delay_max=60.0).delay_after(attempts) == 60.0


@pytest.mark.parametrize("attempts", [0, -1])
def test_no_attempt_yet_counts_as_the_first(attempts: int) -> None:
    assert Policy(retry_delay=2.0).delay_after(attempts) == 2.0


def test_no_delay_stays_no_delay() -> None:
    assert Policy(retry_delay=0.0).delay_after(7) == 0.0


def test_the_delay_is_a_float_even_if_the_settings_are_not() -> None:
    assert isinstance(Policy(retry_delay=1, retry_delay_max=3).delay_after(9), float)
