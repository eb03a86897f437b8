"""Retry policies."""

import pytest

from geartrain.app import decorators, retry
from geartrain.app.retry import GiveUp, Retry, RetryPolicy
from geartrain.backoff import Backoff
from geartrain.errors import ArgumentsError, CodecError

STEADY = Backoff(base=1, factor=2, cap=8, jitter=False)


def test_number_is_the_base_of_a_backoff() -> None:
    assert decorators.as_backoff(5).base == 5
    assert decorators.as_backoff(3600).cap == 3600
    assert decorators.as_backoff(STEADY) is STEADY


def test_no_delay_after_the_last_attempt() -> None:
    policy = RetryPolicy(retries=2, backoff=STEADY)
    assert [policy.delay_after(ValueError(), attempt) for attempt in (1, 2, 3)] == [1, 2, None]


def test_no_retries_is_the_default() -> None:
    assert RetryPolicy().delay_after(ValueError(), 1) is None


def test_give_up_is_not_retried() -> None:
    assert RetryPolicy(retries=9).delay_after(GiveUp("no use"), 1) is None


@pytest.mark.parametrize("hopeless", [ArgumentsError("no"), CodecError("no")])
def test_payload_errors_are_not_retried(hopeless: Exception) -> None:
    assert RetryPolicy(retries=9).delay_after(hopeless, 1) is None


def test_retry_sets_the_delay() -> None:
    policy = RetryPolicy(retries=1, backoff=STEADY)
    assert policy.delay_after(Retry(after=30), 1) == 30
    assert policy.delay_after(Retry(), 1) == 1
    assert policy.delay_after(Retry(after=-5), 1) == 0
    assert policy.delay_after(Retry(after=30), 2) is None


def test_retry_on_and_give_up_on() -> None:
    policy = RetryPolicy(retries=3, backoff=STEADY, retry_on=(OSError,), give_up_on=(FileNotFoundError,))
    assert policy.delay_after(ConnectionError(), 1) == 1
    assert policy.delay_after(FileNotFoundError(), 1) is None
    assert policy.delay_after(ValueError(), 1) is None


def test_reason_without_text_is_the_name() -> None:
    assert retry.reason_of(ValueError()) == "ValueError"
    assert retry.reason_of(GiveUp()) == "GiveUp"
