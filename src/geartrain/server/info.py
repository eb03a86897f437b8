"""What the steward is told of the server around the engine."""

import asyncio
import os
import platform
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import geartrain
from geartrain.admin.views import DoorView, StoreView, System
from geartrain.engine import engine
from geartrain.runtime.committer import Committer
from geartrain.runtime.tick import TickLoop
from geartrain.store.contract import Store
from geartrain.store.sqlite import SqliteStore, disk_size

if TYPE_CHECKING:
    from geartrain.server.listeners import Doors


class RunningServer:
    """The steward's `Site`."""

    def __init__(self, tick_loop: TickLoop, store: Store, url: str, committer: Committer | None) -> None:
        self._tick_loop = tick_loop
        self._store = store
        self._url = url  # of the store
        self._committer = committer
        self._started_at = tick_loop.clock()
        self.doors: Doors | None = None  # until they are made

    def connections(self) -> int:
        """How many peers are in."""
        return self.doors.connections if self.doors is not None else 0

    async def system(self) -> System:
        """What runs, and on what."""
        return System(
            version=geartrain.__version__,
            compiled=not (engine.__file__ or "").endswith(".py"),
            python=platform.python_version(),
            loop=type(self._tick_loop.loop).__module__.partition(".")[0],
            platform=platform.platform(),
            pid=os.getpid(),
            started_at=self._started_at,
            memory=resident(),
            doors=self._open_doors(),
            store=await self._kept_in(),
        )

    def _open_doors(self) -> list[DoorView]:
        if self.doors is None:
            return []
        count = self.doors.connections_by_protocol
        return [
            DoorView(address.scheme, str(address), count.get(address.scheme.partition("+")[0], 0))
            for address in self.doors.addresses
        ]

    async def _kept_in(self) -> StoreView:
        size = None
        if isinstance(self._store, SqliteStore):
            loop = asyncio.get_running_loop()
            size = await loop.run_in_executor(None, disk_size, self._store.path)
        committer = self._committer
        if committer is None:
            return StoreView(self._url, self._store.durable, size, 0, 0, None, None)
        durations = sorted(committer.durations)
        return StoreView(
            self._url, self._store.durable, size, committer.changes, committer.commits,
            share(durations, 0.5), share(durations, 0.99),
        )  # fmt: skip


def share(ordered: Sequence[float], part: float) -> float | None:
    """The value below which so large a part lies.

    >>> share([1.0, 2.0, 3.0, 4.0], 0.5)
    3.0
    """
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else None


def resident() -> int:
    """The bytes of memory that this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):  # not Linux: the most it ever had is the nearest there is
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
