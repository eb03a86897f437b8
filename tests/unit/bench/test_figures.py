"""Medians over rounds, and ratios within them."""

import pytest

from bench import figures
from bench.figures import Sample


def rounds(*values: float | None) -> list[Sample | None]:
    return [None if value is None else Sample(value) for value in values]


def test_the_median_leaves_out_rounds_that_failed() -> None:
    assert figures.median(rounds(5, None, 1, 9)) == 5


def test_nothing_has_no_median() -> None:
    assert figures.median([]) is None
    assert figures.median(rounds(None)) is None
    assert figures.median(rounds(1.0), "p99") is None


def test_a_ratio_is_taken_within_a_round() -> None:
    """A machine that is ten times slower in one round changes no ratio; dividing medians would."""
    ours, theirs = rounds(100, 10, 30), rounds(50, 5, 10)
    assert figures.ratio(ours, theirs, False) == 2


def test_a_ratio_needs_both_in_the_round() -> None:
    assert figures.ratio(rounds(10, None, 30), rounds(5, 5, None), False) == 2
    assert figures.ratio(rounds(None), rounds(1), False) is None


def test_less_memory_is_ahead() -> None:
    assert figures.ratio(rounds(100), rounds(400), True) == 4


def test_nothing_is_divided_by_zero() -> None:
    assert figures.ratio(rounds(1), rounds(0), False) is None
    assert figures.spread(rounds(0, 1)) is None


def test_the_spread_is_the_best_round_over_the_worst() -> None:
    assert figures.spread(rounds(10, 40, None, 20)) == 4


@pytest.mark.parametrize(("share", "found"), [(0.0, 1), (0.5, 3), (0.99, 4), (1.0, 4)])
def test_percentiles(share: float, found: float) -> None:
    assert figures.percentile([1, 2, 3, 4], share) == found


def test_no_figures_have_no_percentile() -> None:
    assert figures.percentile([], 0.5) is None


@pytest.mark.parametrize(("ratio", "text"), [(None, "-"), (0.456, "0.46"), (12.34, "12.3"), (1234.5, "1,234")])
def test_ratios_as_people_read_them(ratio: float | None, text: str) -> None:
    assert figures.short(ratio) == text
