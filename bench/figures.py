"""What is computed from what was measured: medians over rounds, and ratios within a round.

A busy moment of the machine hits everybody who is measured in it. So two figures are only divided by each other when
they come from the same round, and the ratio that counts is the median of those.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Sample(NamedTuple):
    """One figure of one round."""

    value: float
    server_us: float | None = None  # microseconds of a processor that the server took for each job
    p50: float | None = None  # seconds, where requests went one by one
    p99: float | None = None
    load_busy: float | None = None  # the load's share of its own core; near 1, the server could do more
    late_p99: float | None = None  # seconds by which the load itself was late, where it has times to keep


Rounds = Sequence[Sample | None]  # None: it failed in that round


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Of figures in their order; None where there are none."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else None


def median(rounds: Rounds, field: str = "value") -> float | None:
    """Of one field, over the rounds that have it."""
    found = [getattr(sample, field) for sample in rounds if sample is not None]
    kept = [value for value in found if value is not None]
    return statistics.median(kept) if kept else None


def spread(rounds: Rounds) -> float | None:
    """How far the rounds lie apart: the largest figure over the smallest."""
    values = [sample.value for sample in rounds if sample is not None]
    return max(values) / min(values) if values and min(values) > 0 else None


def ratio(ours: Rounds, theirs: Rounds, less_is_better: bool) -> float | None:
    """How many times better ours is: the median of what each round says. Above 1, ours is ahead."""
    found = ratios(ours, theirs, less_is_better)
    return statistics.median(found) if found else None


def ratios(ours: Rounds, theirs: Rounds, less_is_better: bool) -> list[float]:
    """What each round says of that, if both have a figure in it."""
    pairs = [(a.value, b.value) for a, b in zip(ours, theirs, strict=False) if a is not None and b is not None]
    if less_is_better:
        pairs = [(theirs, ours) for ours, theirs in pairs]
    return [first / second for first, second in pairs if second > 0]


def short(ratio: float | None) -> str:
    """A ratio as people read it: two digits that count, and none that do not."""
    if ratio is None:
        return "-"
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"
