"""Clients that wait for a job only so long."""

import heapq
import itertools
from typing import Final

from geartrain.doors.periodic.watcher import RunWatcher
from geartrain.engine.engine import Engine

_EXPIRED: Final = b"expired"


class Waits:
    """Watchers by the time at which they give up. Those that have had their answer are passed over."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._entries: list[tuple[float, int, RunWatcher]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, when: float, watcher: RunWatcher) -> None:
        """This one waits until then."""
        heapq.heappush(self._entries, (when, next(self._numbers), watcher))

    def next(self) -> float | None:
        """When the first one gives up."""
        while self._entries and not self._entries[0][2].watching:
            heapq.heappop(self._entries)
        return self._entries[0][0] if self._entries else None

    def expire(self, now: float) -> None:
        """Answer those who have waited long enough."""
        while (when := self.next()) is not None and when <= now:
            _, _, watcher = heapq.heappop(self._entries)
            self._engine.unwatch_all(watcher)
            watcher.finish(_EXPIRED if watcher.connection.dialect.data else b"")
