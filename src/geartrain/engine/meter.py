"""How long things take, counted in buckets that double: cheap to count, and good enough for percentiles.

Bucket 0 is for less than a microsecond, and for a clock that was moved back; bucket n for less than 2**n of them.

>>> bucket(0.0), bucket(0.000001), bucket(0.0015), bucket(-5.0)
(0, 1, 11, 0)
"""

from typing import Final

BUCKETS: Final = 64
MICRO: Final = 1_000_000.0
LONGEST: Final = 4e12  # seconds; what is longer, or no number at all, is in the first bucket


def bucket(seconds: float) -> int:
    """Where so many seconds are counted. The engine has these words in line: a call costs as much again."""
    return int(seconds * MICRO).bit_length() if 0.0 < seconds < LONGEST else 0


def fresh() -> list[int]:
    """Nothing counted yet."""
    return [0] * BUCKETS
