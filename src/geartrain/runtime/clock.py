"""The server's clock: epoch seconds that do not go back when NTP corrects the time.

The wall clock is read once; from then on the monotonic clock counts. Once a second the two are compared: if the wall
clock was set (or the machine was suspended), the server follows it, logs it and tells `on_step`. There the deadlines of
running jobs move along: they are times of this clock, but mean durations.
"""

import logging
import time
from collections.abc import Callable

CHECK_SECONDS = 1.0
TOLERANCE_SECONDS = 1.0  # NTP corrects less than this; it is ignored
_READINGS = 5

_log = logging.getLogger("geartrain.server")


class Clock:
    """Call it for the time. A call reads the monotonic clock once.

    >>> clock = Clock()
    >>> clock() <= clock()
    True
    """

    __slots__ = ("_check_at", "_monotonic", "_offset", "_wall", "on_step")

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.on_step: Callable[[float], None] | None = None  # called with the seconds by which the wall clock moved
        self._wall = wall
        self._monotonic = monotonic
        self._offset = _offset(wall, monotonic)
        self._check_at = monotonic() + CHECK_SECONDS

    def __call__(self) -> float:
        tick = self._monotonic()
        if tick >= self._check_at:
            self._compare(tick)
        return tick + self._offset

    def _compare(self, tick: float) -> None:
        self._check_at = tick + CHECK_SECONDS
        moved = self._wall() - (tick + self._offset)
        if abs(moved) <= TOLERANCE_SECONDS:
            return
        self._offset += moved
        _log.warning("wall clock changed", extra={"fields": {"seconds": f"{moved:+.3f}"}})
        if self.on_step is not None:
            self.on_step(moved)


def _offset(wall: Callable[[], float], monotonic: Callable[[], float]) -> float:
    """The wall clock's lead over the monotonic clock.

    The process may be interrupted between two readings, and servers of one machine would then differ by that: of some
    attempts the shortest one counts.
    """
    return min(_reading(wall, monotonic) for _ in range(_READINGS))[1]


def _reading(wall: Callable[[], float], monotonic: Callable[[], float]) -> tuple[float, float]:
    """How long it took to read the wall clock, and its lead."""
    before = monotonic()
    now = wall()
    after = monotonic()
    return after - before, now - (before + after) / 2
