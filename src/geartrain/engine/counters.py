"""Counters that the engine updates for every job: durations and outcomes.

Durations are counted in buckets whose width doubles, which is cheap and precise enough for percentiles. Bucket 0 is
for less than a microsecond and for invalid durations, bucket n for less than 2**n microseconds.

>>> histogram = DurationHistogram()
>>> for seconds in (0.0, 0.000001, 0.0015, 0.0015, -5.0):
...     histogram.add(seconds)
>>> {bucket: count for bucket, count in enumerate(histogram.counts()) if count}, round(histogram.total_seconds, 6)
({0: 2, 1: 1, 11: 2}, 0.003001)
"""

from typing import Final

from mypy_extensions import i64

from geartrain.engine.lifecycle import CANCELLED, DONE, EXPIRED, FAILED
from geartrain.model import JobState

BUCKETS: Final = 64
MICRO: Final = 1_000_000.0
LONGEST: Final = 4e12  # seconds; longer, negative and NaN durations count in bucket 0
# Where each bucket ends, in microseconds.
_ENDS: Final = [min(2.0**bucket, LONGEST * MICRO) for bucket in range(BUCKETS)]


class DurationHistogram:
    """Counts durations. Consecutive ones mostly fall into the same bucket, so a run of them is counted separately."""

    __slots__ = ("_begin", "_bucket", "_counts", "_end", "_run", "largest", "total_seconds")

    def __init__(self) -> None:
        self.total_seconds = 0.0  # sum of the valid durations
        self.largest = 0.0  # duration since `take_largest` was called last
        self._counts = [0] * BUCKETS
        self._bucket = 0
        self._begin = 0.0  # the bounds of `_bucket` in microseconds
        self._end = 1.0
        self._run: i64 = 0  # how many more there are in `_bucket` than `_counts` says

    def add(self, seconds: float) -> None:
        """Count a duration."""
        micros = seconds * MICRO
        if not self._begin <= micros < self._end:
            if not 0.0 <= seconds < LONGEST:
                seconds = 0.0
            self._begin_run(seconds * MICRO)
        self._run += 1
        self.total_seconds += seconds
        if seconds > self.largest:
            self.largest = seconds

    def _begin_run(self, micros: float) -> None:
        """Count what follows in the bucket of this duration."""
        self._counts[self._bucket] += self._run
        self._run = 0
        self._bucket = bucket = int(micros).bit_length()
        self._begin = _ENDS[bucket - 1] if bucket else 0.0
        self._end = _ENDS[bucket]

    def remove(self, seconds: float) -> None:
        """Undo `add`, which may be called later."""
        if 0.0 < seconds < LONGEST:
            self._counts[int(seconds * MICRO).bit_length()] -= 1
            self.total_seconds -= seconds
        else:
            self._counts[0] -= 1

    def add_all(self, other: "DurationHistogram") -> None:
        """Add the counts of another histogram."""
        for bucket, count in enumerate(other.counts()):
            self._counts[bucket] += count
        self.total_seconds += other.total_seconds

    def take_largest(self) -> float:
        """Return the largest duration since the last call."""
        largest, self.largest = self.largest, 0.0
        return largest

    def counts(self) -> list[int]:
        """Return the number of durations in each bucket."""
        counts = list(self._counts)
        counts[self._bucket] += self._run
        return counts


class JobTimes:
    """How long jobs waited and ran: of one function, or of all functions beyond `Policy.measured_functions`."""

    __slots__ = ("run", "shared", "wait")

    def __init__(self, shared: bool = False) -> None:
        self.shared = shared  # by several functions
        self.wait = DurationHistogram()  # from ready to run until assigned, for every attempt
        self.run = DurationHistogram()  # from the last assignment until the end


class OutcomeCounts:
    """How many jobs ended, by state. Attributes instead of a list, because compiled they are plain integers."""

    __slots__ = ("cancelled", "dead", "done", "expired", "failed")

    def __init__(self) -> None:
        self.done = 0
        self.failed = 0
        self.cancelled = 0
        self.dead = 0
        self.expired = 0

    def count(self, state: JobState) -> None:
        """Count a job that entered a final state."""
        if state is DONE:
            self.done += 1
        elif state is FAILED:
            self.failed += 1
        elif state is CANCELLED:
            self.cancelled += 1
        elif state is EXPIRED:
            self.expired += 1
        else:
            self.dead += 1

    def uncount(self, state: JobState) -> None:
        """Undo `count`."""
        if state is DONE:
            self.done -= 1
        elif state is FAILED:
            self.failed -= 1
        elif state is CANCELLED:
            self.cancelled -= 1
        elif state is EXPIRED:
            self.expired -= 1
        else:
            self.dead -= 1

    def add(self, other: "OutcomeCounts") -> None:
        """Add the counts of another one."""
        self.done += other.done
        self.failed += other.failed
        self.cancelled += other.cancelled
        self.dead += other.dead
        self.expired += other.expired

    @property
    def total(self) -> int:
        return self.done + self.failed + self.cancelled + self.dead + self.expired
