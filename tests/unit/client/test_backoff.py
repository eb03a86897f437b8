"""Delays grow, differ, and end somewhere."""

from geartrain.client.backoff import Backoff


def test_delays_double_up_to_the_longest_and_keep_within_their_jitter() -> None:
    backoff = Backoff(first=1.0, longest=10.0)
    for due in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        assert due / 2 <= backoff.next() <= due


def test_two_programs_do_not_come_at_the_same_moment() -> None:
    assert len({Backoff().next() for _ in range(20)}) > 1


def test_success_starts_anew() -> None:
    backoff = Backoff(first=1.0, longest=10.0)
    for _ in range(2000):  # so often that a plain power would overflow
        assert backoff.next() <= 10.0
    backoff.reset()
    assert backoff.next() <= 1.0
