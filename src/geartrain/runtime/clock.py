"""The server's clock: epoch seconds that never jitter backwards.

The wall clock is read once; from then on the monotonic clock counts. Once a second the two are compared: if
somebody has moved the wall clock (or the machine has slept), the server follows it and says so in the log.
"""

import logging
import time
from collections.abc import Callable

CHECK_SECONDS = 1.0
TOLERANCE_SECONDS = 1.0  # less than this is the work of NTP and is left alone

_log = logging.getLogger("geartrain.server")


class Clock:
    """Call it for the time. A call is one reading of the monotonic clock, an addition and a comparison.

    >>> clock = Clock()
    >>> clock() <= clock()
    True
    """

    __slots__ = ("_check_at", "_monotonic", "_offset", "_wall")

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._offset = wall() - monotonic()
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
        _log.warning("the clock was moved; following it", extra={"fields": {"seconds": f"{moved:+.3f}"}})
