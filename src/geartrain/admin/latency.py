"""Percentiles of durations over a window of time, from readings of a histogram that only counts."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from geartrain.admin.views import Latency
from geartrain.engine.counters import MICRO, DurationHistogram

_NONE: Final = Latency(None, None, None)


class _LatencyReading(NamedTuple):
    counts: list[int]
    largest: float  # since the reading before


class LatencyWindow:
    """The percentiles of a histogram since the oldest of its last readings."""

    def __init__(self, histogram: DurationHistogram, readings: int) -> None:
        self._histogram = histogram
        self._readings = deque([self._take()], maxlen=readings + 1)

    def read(self) -> None:
        """Take a reading; the oldest one is dropped."""
        self._readings.append(self._take())

    def latency(self) -> Latency:
        """The percentiles of the durations since the oldest reading."""
        counts = _difference(self._readings[0].counts, self._histogram.counts())
        if sum(counts) <= 0:
            return _NONE
        largest = max(self._histogram.largest, *(reading.largest for reading in list(self._readings)[1:]), 0.0)
        return Latency(*(percentile(counts, share, largest) for share in (0.5, 0.95, 0.99)))

    def last_interval(self) -> tuple[float, float]:
        """The 50th and 95th percentile between the last two readings; NaN if nothing was counted."""
        before, after = self._readings[-2], self._readings[-1]
        counts = _difference(before.counts, after.counts)
        if sum(counts) <= 0:
            return math.nan, math.nan
        return percentile(counts, 0.5, after.largest), percentile(counts, 0.95, after.largest)

    def _take(self) -> _LatencyReading:
        return _LatencyReading(self._histogram.counts(), self._histogram.take_largest())


def _difference(before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [now - then for then, now in zip(before, after, strict=True)]


def percentile(counts: Sequence[int], share: float, largest: float = float("inf")) -> float:
    """The seconds below which this share of the counts is; within a bucket, evenly distributed up to the largest.

    >>> percentile([0, 0, 0, 100], 0.5)  # a hundred between 4 and 8 microseconds
    6e-06
    >>> percentile([0, 0, 0, 100], 0.5, largest=5e-06)
    4.5e-06
    """
    rank = share * sum(counts)
    seen = 0
    for bucket, count in enumerate(counts):
        if count > 0 and seen + count >= rank:
            low, high = (2.0 ** (bucket - 1), 2.0**bucket) if bucket else (0.0, 1.0)
            high = min(high, max(largest * MICRO, low))
            return (low + (high - low) * (rank - seen) / count) / MICRO
        seen += count
    return 0.0
