"""What this door has to do later: heartbeats for workers that wait, and looks at requests that wait.

Every request puts something on it and nearly every answer strikes it off again, so there is one timer for all, and
striking off costs nothing: an entry stands only while its item is still due at the time that the entry names. What
no longer stands is skipped when its time comes, or swept when it outnumbers the rest.
"""

import asyncio
import heapq
import itertools
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from geartrain.runtime.tick import TickLoop

NOT_DUE: Final = 0.0
_SWEEP_FROM: Final = 64


class Timed(Protocol):
    """Something that can be due."""

    due_at: float  # by the loop's clock, which nobody moves; NOT_DUE if it is not on the timetable

    def due(self) -> None:
        """Its time has come. It is off the timetable, and may put itself on again."""


class Timetable:
    """One per door."""

    def __init__(self, tick_loop: "TickLoop") -> None:
        self._tick_loop = tick_loop
        self._entries: list[tuple[float, int, Timed]] = []
        self._serial = itertools.count()
        self._void = 0  # entries that stand no longer
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries) - self._void

    def put(self, item: Timed, seconds: float) -> None:
        """`item` is due so many seconds from now, and at no other time."""
        if item.due_at:
            self._void += 1
        when = item.due_at = self._tick_loop.loop.time() + seconds
        heapq.heappush(self._entries, (when, next(self._serial), item))
        if self._timer is None or when < self._timer_at:
            self._arm()

    def strike(self, item: Timed) -> None:
        """`item` is not due any more."""
        if not item.due_at:
            return
        item.due_at = NOT_DUE
        self._void += 1
        if self._void > len(self._entries) - self._void + _SWEEP_FROM:
            self._entries = [entry for entry in self._entries if entry[2].due_at == entry[0]]
            heapq.heapify(self._entries)
            self._void = 0

    def close(self) -> None:
        """Let go of the loop."""
        self._closed = True
        self._entries.clear()
        self._void = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._entries and not self._closed:
            self._timer_at = self._entries[0][0]
            self._timer = self._tick_loop.loop.call_at(self._timer_at, self._come_due)

    def _come_due(self) -> None:
        self._timer = None
        now = self._tick_loop.loop.time()
        self._tick_loop.engine.now = self._tick_loop.clock()
        # What is put on it meanwhile has its turn with the next timer, even if it is due at once.
        due = []
        while self._entries and self._entries[0][0] <= now:
            due.append(heapq.heappop(self._entries))
        for when, _, item in due:
            if item.due_at == when:
                item.due_at = NOT_DUE
                item.due()
            else:
                self._void -= 1
        self._arm()
        self._tick_loop.schedule_tick()
