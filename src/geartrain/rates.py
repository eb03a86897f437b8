"""Rates: how often jobs may start.

A rate is a bucket of `burst` tokens that is refilled evenly. What is remembered of it is one time, `next_at`: when the
bucket is full again. A job may start when that is less than a whole bucket away, and moves it by one interval.

>>> rate = Rate.parse("2/s")
>>> rate.interval, rate.burst
(0.5, 1)
>>> rate.due_at(next_at=100.0 + rate.interval)  # one has started
100.5

Three at once, and the fourth one when half a second has passed:

>>> rate = Rate.parse("2/s", burst=3)
>>> rate.due_at(next_at=100.0 + 3 * rate.interval)
100.5
"""

from typing import Final, NamedTuple

UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MOST: Final = 1_000_000  # jobs, of a rate or a burst


class Rate(NamedTuple):
    """One job in so many seconds on average, and so many at once."""

    interval: float
    burst: int = 1

    @classmethod
    def parse(cls, text: str, burst: int = 1) -> "Rate":
        """Read a rate such as `100/m`; raise ValueError if it is none.

        >>> Rate.parse("90/m").interval
        0.6666666666666666
        >>> Rate.parse("5 per minute")
        Traceback (most recent call last):
        ...
        ValueError: '5 per minute' is not a rate such as 5/s, 100/m, 1000/h or 10/d
        """
        count, slash, unit = text.partition("/")
        count, unit = count.strip(), unit.strip()
        if not slash or unit not in UNITS or not count.isascii() or not count.isdigit():
            raise ValueError(f"{text!r} is not a rate such as 5/s, 100/m, 1000/h or 10/d")
        if not 1 <= int(count) <= MOST:
            raise ValueError(f"a rate must be 1 to {MOST:,} jobs: {text!r}")
        if not 1 <= burst <= MOST:
            raise ValueError(f"a burst must be 1 to {MOST:,} jobs: {burst}")
        return cls(UNITS[unit] / int(count), burst)

    @property
    def spare(self) -> float:
        """By how many seconds `next_at` may be in the future when a job starts."""
        return (self.burst - 1) * self.interval

    def due_at(self, next_at: float) -> float:
        """When the next job may start; it may now, if that is not later than now."""
        return next_at - self.spare

    def allowed(self, next_at: float, now: float) -> int:
        """How many jobs may start now, if one may.

        >>> Rate(2.0, burst=3).allowed(next_at=101.0, now=100.0)
        2
        """
        missing = max(next_at - now, 0.0)
        return max(int(self.burst - missing / self.interval), 1)

    def capped(self, next_at: float, now: float) -> float:
        """No bucket is emptier than empty: it was a slower rate, or the clock was set back."""
        return min(next_at, now + self.burst * self.interval)
