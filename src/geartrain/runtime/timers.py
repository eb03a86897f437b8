"""Callbacks at a time, for doors: one heap, and one timer of the loop for all of them.

Doors set a timer for nearly every request and cancel nearly all of them again. Here setting one is a push on a heap
and cancelling one marks it; cancelled ones are removed when their time comes, or when they outnumber the others.

Times are by the loop's clock, which is monotonic. What the engine has to do at a time of the wall clock (run a job,
expire one) has its own deadlines; the tick loop keeps a single timer here for the first of them.
"""

import asyncio
import heapq
import logging
from collections.abc import Callable
from typing import Final

# Timers closer together than this are one: uvloop counts in milliseconds.
PRECISION: Final = 0.0005
_SWEEP_FROM: Final = 64

_log = logging.getLogger("geartrain.server")


class DelayedCall:
    """A callback that is called once, at `when`, unless it is cancelled."""

    __slots__ = ("_timers", "callback", "in_heap", "when")

    def __init__(self, timers: "Timers", when: float, callback: Callable[[], object]) -> None:
        self._timers = timers
        self.when = when
        self.callback: Callable[[], object] | None = callback  # None: it was called, or cancelled
        self.in_heap = True

    def cancel(self) -> None:
        """Do not call. Without effect after the call."""
        if self.callback is not None:
            self.callback = None  # and let go of whatever it refers to
            if self.in_heap:
                self._timers.note_cancelled()


class Timers:
    """All delayed calls of a server. Each callback runs in a tick."""

    def __init__(self, loop: asyncio.AbstractEventLoop, begin_tick: Callable[[], object]) -> None:
        self._loop = loop
        self._begin_tick = begin_tick
        self._heap: list[tuple[float, int, DelayedCall]] = []
        self._serial = 0  # decides between calls at the same time
        self._cancelled = 0  # calls in the heap that will not be made
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._closed = False

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def call_later(self, seconds: float, callback: Callable[[], object]) -> DelayedCall:
        """Call back after this many seconds."""
        when = self._loop.time() + seconds
        call = DelayedCall(self, when, callback)
        self._serial += 1
        heapq.heappush(self._heap, (when, self._serial, call))
        if self._timer is None or when < self._timer_at - PRECISION:
            self._arm()
        return call

    def note_cancelled(self) -> None:
        """A call in the heap was cancelled."""
        self._cancelled += 1
        if self._cancelled > len(self._heap) - self._cancelled + _SWEEP_FROM:
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def close(self) -> None:
        """Call nothing any more."""
        self._closed = True
        self._heap.clear()
        self._cancelled = 0
        self._arm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._disarm()
        if self._heap and not self._closed:
            self._timer_at = self._heap[0][0]
            self._timer = self._loop.call_at(self._timer_at, self._call_due)

    def _call_due(self) -> None:
        self._disarm()
        self._begin_tick()
        limit = self._loop.time() + PRECISION
        # Calls that are made meanwhile wait for the next timer, even if they are due at once.
        due: list[DelayedCall] = []
        while self._heap and self._heap[0][0] <= limit:
            call = heapq.heappop(self._heap)[2]
            call.in_heap = False
            if call.callback is None:
                self._cancelled -= 1
            else:
                due.append(call)
        for call in due:
            callback = call.callback
            if callback is None:  # cancelled by one of those before it
                continue
            call.callback = None
            try:
                callback()
            except Exception:  # the others are due as well
                _log.exception("timer failed")
        if self._timer is None:
            self._arm()
