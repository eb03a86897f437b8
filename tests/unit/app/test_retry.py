"""When a task is tried again, and after how long."""

import doctest

import pytest

from geartrain.app import backoff, codecs, retry, task
from geartrain.app.backoff import Backoff
from geartrain.app.retry import GiveUp, Retry, RetryPolicy
from geartrain.errors import ArgumentsError, CodecError

STEADY = Backoff(base=1, factor=2, cap=8, jitter=False)


@pytest.mark.parametrize("module", [backoff, retry, codecs, task])
def test_the_examples_in_the_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_waits_grow_up_to_the_cap() -> None:
    assert [STEADY.after(attempt) for attempt in range(1, 7)] == [1, 2, 4, 8, 8, 8]


def test_a_wait_after_very_many_attempts_is_the_cap() -> None:
    assert Backoff(jitter=False).after(100_000) == 600


def test_jitter_draws_from_zero_to_the_bound() -> None:
    drawn: list[tuple[float, float]] = []
    Backoff(base=3, factor=2).after(2, lambda low, high: drawn.append((low, high)) or 0.0)
    assert drawn == [(0.0, 6.0)]


def test_jitter_spreads() -> None:
    waits = {Backoff(base=10).after(1) for _ in range(50)}
    assert len(waits) > 10
    assert all(0 <= wait <= 10 for wait in waits)


@pytest.mark.parametrize("wrong", [{"base": -1}, {"factor": 0.5}, {"cap": -1}])
def test_a_backoff_that_makes_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a backoff needs"):
        Backoff(**wrong)


def test_a_number_is_the_base_of_a_backoff() -> None:
    assert backoff.backoff_of(5).base == 5
    assert backoff.backoff_of(3600).cap == 3600
    assert backoff.backoff_of(STEADY) is STEADY


def test_attempts_run_out() -> None:
    policy = RetryPolicy(retries=2, backoff=STEADY)
    assert [policy.delay_after(ValueError(), attempt) for attempt in (1, 2, 3)] == [1, 2, None]


def test_no_retries_is_the_default() -> None:
    assert RetryPolicy().delay_after(ValueError(), 1) is None


def test_give_up_ends_it_at_once() -> None:
    assert RetryPolicy(retries=9).delay_after(GiveUp("no use"), 1) is None


@pytest.mark.parametrize("hopeless", [ArgumentsError("no"), CodecError("no")])
def test_what_no_second_attempt_can_change(hopeless: Exception) -> None:
    assert RetryPolicy(retries=9).delay_after(hopeless, 1) is None


def test_a_task_says_when_it_wants_to_be_tried_again() -> None:
    policy = RetryPolicy(retries=1, backoff=STEADY)
    assert policy.delay_after(Retry(after=30), 1) == 30
    assert policy.delay_after(Retry(), 1) == 1
    assert policy.delay_after(Retry(after=-5), 1) == 0
    assert policy.delay_after(Retry(after=30), 2) is None


def test_only_some_exceptions_are_tried_again() -> None:
    policy = RetryPolicy(retries=3, backoff=STEADY, retry_on=(OSError,), give_up_on=(FileNotFoundError,))
    assert policy.delay_after(ConnectionError(), 1) == 1
    assert policy.delay_after(FileNotFoundError(), 1) is None
    assert policy.delay_after(ValueError(), 1) is None


def test_a_reason_without_a_text_is_the_name() -> None:
    assert retry.reason_of(ValueError()) == "ValueError"
    assert retry.reason_of(GiveUp()) == "GiveUp"
