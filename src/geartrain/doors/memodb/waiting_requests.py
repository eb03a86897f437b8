"""Requests that wait, all of them for the same time at most: the one that was added first is due first.

Nearly every request of this door waits, and nearly none waits too long. So one timer serves all of them, and a request
is an entry of a dictionary, which costs a fraction of a timer of its own.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from geartrain.runtime.timers import PRECISION

if TYPE_CHECKING:
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall


class WaitingRequests:
    """The requests of a door that wait for one thing."""

    def __init__(self, tick_loop: "TickLoop", seconds: float, due: Callable[[Any], None]) -> None:
        self._loop = tick_loop.loop
        self._timers = tick_loop.timers
        self._seconds = seconds
        self._due = due  # called with a request that has waited this long
        self._due_at: dict[Any, float] = {}  # by the loop's clock; the one that waits longest is first
        self._timer: DelayedCall | None = None

    def __contains__(self, request: object) -> bool:
        return request in self._due_at

    def __len__(self) -> int:
        return len(self._due_at)

    def add(self, request: Any) -> None:
        """A request that does not wait yet begins to wait."""
        self._due_at[request] = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._timers.call_later(self._seconds, self._check)

    def discard(self, request: Any) -> None:
        """It waits no longer, if it did."""
        self._due_at.pop(request, None)

    def close(self) -> None:
        """Call nothing any more."""
        self._due_at.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        """Handle the requests that are due, and set the timer for the next one."""
        limit = self._loop.time() + PRECISION
        due: list[Any] = []
        for request, at in self._due_at.items():
            if at > limit:
                break
            due.append(request)
        try:
            for request in due:
                if self._due_at.pop(request, None) is not None:  # else one of those before it has ended it
                    self._due(request)
        finally:
            self._timer = None
            for at in self._due_at.values():
                self._timer = self._timers.call_later(max(at - self._loop.time(), 0.0), self._check)
                break
