"""When a task is tried again, and after how long."""

import doctest

import pytest

from geartrain.app import codecs, decorators, retry, task
from geartrain.app.retry import GiveUp, Retry, RetryPolicy
from geartrain.backoff import Backoff
from geartrain.errors import ArgumentsError, CodecError

STEADY = Backoff(base=1, factor=2, cap=8, jitter=False)


@pytest.mark.parametrize("module", [retry, codecs, task])
def test_the_examples_in_the_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_number_is_the_base_of_a_backoff() -> None:
    assert decorators.as_backoff(5).base == 5
    assert decorators.as_backoff(3600).cap == 3600
    assert decorators.as_backoff(STEADY) is STEADY


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
