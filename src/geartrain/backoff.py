"""Delays that grow with every failure in a row, and the jitter that spreads them.

When a server comes back, a thousand programs wait for it; when a shared service fails, so do a thousand tasks. Without
jitter all of them would try again in the same moment.
"""

import dataclasses
import random
from collections.abc import Callable
from typing import Final

_FIRST_RECONNECT: Final = 0.05  # seconds
_LAST_RECONNECT: Final = 10.0
# A connection that lasted this many seconds was a good one: its loss begins a new series of failures.
GOOD_CONNECTION: Final = 5.0


def delay(failures: int, base: float, cap: float, factor: float = 2.0) -> float:
    """Seconds to wait after this many failures in a row, without jitter.

    >>> [delay(failures, base=1, cap=60) for failures in (1, 2, 3, 5000)]
    [1.0, 2.0, 4.0, 60.0]
    """
    try:
        return min(float(cap), base * float(factor) ** (max(failures, 1) - 1))
    except OverflowError:
        return float(cap)


@dataclasses.dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that grow by `factor` up to `cap`; with jitter each is a random number between zero and that bound.

    >>> steady = Backoff(base=2, factor=3, cap=10, jitter=False)
    >>> [steady.after(attempt) for attempt in (1, 2, 3, 1000)]
    [2.0, 6.0, 10.0, 10.0]
    """

    base: float = 1.0  # seconds: the bound of the first delay
    factor: float = 2.0
    cap: float = 600.0
    jitter: bool = True

    def __post_init__(self) -> None:
        if self.base < 0 or self.factor < 1 or self.cap < 0:
            raise ValueError(f"a backoff needs base >= 0, factor >= 1 and cap >= 0: {self}")

    def after(self, attempt: int, draw: Callable[[float, float], float] = random.uniform) -> float:
        """The seconds to wait after this attempt failed; the first attempt is 1."""
        bound = delay(attempt, self.base, self.cap, self.factor)
        return draw(0.0, bound) if self.jitter else bound


class ReconnectDelay:
    """The delays between attempts to connect to one server. The first is short: most restarts take seconds.

    Half of each delay is certain, so that a program never connects in a busy loop.
    """

    __slots__ = ("_cap", "_first", "failures")

    def __init__(self, first: float = _FIRST_RECONNECT, cap: float = _LAST_RECONNECT) -> None:
        self._first = first
        self._cap = cap
        self.failures = 0  # in a row

    def next(self) -> float:
        """Count a failure and return the seconds until the next attempt."""
        self.failures += 1
        return delay(self.failures, self._first, self._cap) * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin again with the first delay."""
        self.failures = 0
