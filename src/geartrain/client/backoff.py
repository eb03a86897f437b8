"""How long to wait before the next try: longer each time, and never the same for two programs.

When a server comes back, a thousand programs wait for it. The jitter keeps them from coming all at once.
"""

import random
from typing import Final

FIRST: Final = 0.05  # seconds
LONGEST: Final = 10.0
# A connection that lived so long was a good one: the next trouble is a new one.
GOOD_FOR: Final = 5.0


class Backoff:
    """The delays of one series of failures."""

    __slots__ = ("_first", "_longest", "tries")

    def __init__(self, first: float = FIRST, longest: float = LONGEST) -> None:
        self._first = first
        self._longest = longest
        self.tries = 0  # failures in a row

    def next(self) -> float:
        """Seconds until the next try: between half of what is due and all of it, doubled with every failure."""
        due = min(self._first * 2.0 ** min(self.tries, 30), self._longest)
        self.tries += 1
        return due * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It worked."""
        self.tries = 0
