"""How long things take, counted in buckets that double: cheap to count, and good enough for percentiles.

Bucket 0 is for less than a microsecond, and for a clock that was moved back; bucket n for less than 2**n of them.

>>> meter = DurationHistogram()
>>> for seconds in (0.0, 0.000001, 0.0015, 0.0015, -5.0):
...     meter.add(seconds)
>>> {bucket: count for bucket, count in enumerate(meter.counts()) if count}, round(meter.total_seconds, 6)
({0: 2, 1: 1, 11: 2}, 0.003001)
"""

from typing import Final

from geartrain.engine.lifecycle import CANCELLED, DONE, FAILED
from geartrain.model import JobState

BUCKETS: Final = 64
MICRO: Final = 1_000_000.0
LONGEST: Final = 4e12  # seconds; what is longer, or no number at all, is in the first bucket


class DurationHistogram:
    """Counts durations. Neighbours mostly fall into the same bucket, so a run of them is counted by itself first."""

    __slots__ = ("_bucket", "_counts", "_run", "total_seconds")

    def __init__(self) -> None:
        self.total_seconds = 0.0  # of all that were noted, but for those that make no sense
        self._counts = [0] * BUCKETS
        self._bucket = 0
        self._run = 0  # how many more there are in that bucket

    def add(self, seconds: float) -> None:
        """One more."""
        bucket = 0
        if 0.0 < seconds < LONGEST:
            bucket = int(seconds * MICRO).bit_length()
            self.total_seconds += seconds
        if bucket != self._bucket:
            self._counts[self._bucket] += self._run
            self._bucket = bucket
            self._run = 0
        self._run += 1

    def remove(self, seconds: float) -> None:
        """One less: it was noted, or will be, and is not to count."""
        if 0.0 < seconds < LONGEST:
            self._counts[int(seconds * MICRO).bit_length()] -= 1
            self.total_seconds -= seconds
        else:
            self._counts[0] -= 1

    def counts(self) -> list[int]:
        """How many there were, by bucket."""
        counts = list(self._counts)
        counts[self._bucket] += self._run
        return counts


class OutcomeCounts:
    """Attributes rather than a table: compiled, they are plain numbers."""

    __slots__ = ("cancelled", "dead", "done", "failed")

    def __init__(self) -> None:
        self.done = 0
        self.failed = 0
        self.cancelled = 0
        self.dead = 0

    def count(self, state: JobState) -> None:
        """One more."""
        if state is DONE:
            self.done += 1
        elif state is FAILED:
            self.failed += 1
        elif state is CANCELLED:
            self.cancelled += 1
        else:
            self.dead += 1

    @property
    def total(self) -> int:
        """All of them."""
        return self.done + self.failed + self.cancelled + self.dead
