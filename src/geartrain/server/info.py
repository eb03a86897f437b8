"""Facts about the running server for operators: version, memory, doors, store."""

import asyncio
import os
import platform
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import geartrain
from geartrain.admin.base import ClusterInfo, LoadValue
from geartrain.admin.views import DoorView, DumpPage, LoadView, ReloadView, StoreView, System, UserView
from geartrain.engine import engine
from geartrain.errors import AdminError
from geartrain.model import JobState
from geartrain.rights import Identity
from geartrain.runtime.committer import Committer
from geartrain.runtime.memory_journal import MemoryJournal
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop
from geartrain.server.dump_loader import DumpLoader
from geartrain.server.dump_pages import DumpPages
from geartrain.store.contract import Store
from geartrain.store.memory import MemoryStore
from geartrain.store.sqlite import SqliteStore, disk_size

if TYPE_CHECKING:
    from geartrain.server.access import ServerAccess
    from geartrain.server.listeners import Doors


class RunningServer:
    """What `admin` needs of the server process; implements its `ServerInfo`."""

    def __init__(
        self,
        tick_loop: TickLoop,
        store: Store,
        store_url: str,
        committer: Committer | None,
        reload: Callable[[Identity | None], ReloadView],
        kept_seconds: Mapping[JobState, float],
        access: "ServerAccess",
        archive: RecordArchive,
        cluster: ClusterInfo | None = None,
    ) -> None:
        self._tick_loop = tick_loop
        self._store = store
        self._store_url = store_url
        self._committer = committer
        self._reload = reload
        self._kept_seconds = kept_seconds  # by the state of a job
        self._access = access
        self._dump_pages = DumpPages(tick_loop, store, archive)
        self._dump_loader: DumpLoader | None = None  # of a server with the memory store
        journal = tick_loop.engine.journal
        if isinstance(store, MemoryStore) and isinstance(journal, MemoryJournal):
            self._dump_loader = DumpLoader(tick_loop, store, journal)
        self.cluster = cluster
        self._started_at = tick_loop.clock()
        self.doors: Doors | None = None  # set by the server, which makes the doors later

    def connections(self) -> int:
        """The number of open connections over all doors."""
        return self.doors.connections if self.doors is not None else 0

    def kept_seconds(self, state: JobState) -> float | None:
        """How long jobs that ended in a state are kept; None: there is no limit of time."""
        return self._kept_seconds.get(state)

    def users(self) -> list[UserView]:
        """Every user, and what it has of its quota."""
        return self._access.users()

    async def dump(self, part: str, number: int, after: int) -> DumpPage:
        """A page of one part of a dump of this server; the header begins one."""
        pages = self._dump_pages
        return pages.begin() if part == "header" else await pages.page(part, number, after)

    async def load(self, lines: bytes, replace: bool, load_value: LoadValue) -> LoadView:
        """Load a dump into the memory store; an AdminError says why it cannot be."""
        if self._dump_loader is None:
            text = f"this server keeps its jobs in {self._store_url}; stop it, and load the dump with --store"
            raise AdminError("conflict", text)
        return await self._dump_loader.load(lines, replace, load_value)

    def reload(self, caller: Identity | None) -> ReloadView:
        """Read users, tokens and certificates again; a SettingsError says why nothing was changed."""
        return self._reload(caller)

    async def system(self) -> System:
        """Version, runtime, memory, doors and store."""
        return System(
            version=geartrain.__version__,
            compiled=not (engine.__file__ or "").endswith(".py"),
            python=platform.python_version(),
            loop=type(self._tick_loop.loop).__module__.partition(".")[0],
            platform=platform.platform(),
            pid=os.getpid(),
            started_at=self._started_at,
            memory=resident_memory(),
            doors=self._door_views(),
            store=await self._store_view(),
            cluster=self.cluster.counts() if self.cluster is not None else None,
        )

    def _door_views(self) -> list[DoorView]:
        if self.doors is None:
            return []
        connections = self.doors.connections_by_protocol
        return [
            DoorView(address.url_scheme, str(address), connections.get(address.scheme.partition("+")[0], 0))
            for address in self.doors.addresses
        ]

    async def _store_view(self) -> StoreView:
        size = None
        if isinstance(self._store, SqliteStore):
            loop = asyncio.get_running_loop()
            size = await loop.run_in_executor(None, disk_size, self._store.path)
        committer = self._committer
        durations = sorted(committer.durations) if committer is not None else []
        return StoreView(
            url=self._store_url,
            durable=self._store.durable,
            size=size,
            pending=committer.changes if committer is not None else 0,
            commits=committer.commits if committer is not None else 0,
            commit_seconds=committer.total_seconds if committer is not None else 0.0,
            commit_p50=percentile(durations, 0.5),
            commit_p99=percentile(durations, 0.99),
        )


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The value below which this share of the sorted values lies; None without values.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5)
    3.0
    """
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else None


def resident_memory() -> int:
    """Bytes of memory that this process uses."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):  # not Linux: its peak is the nearest value there is
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
