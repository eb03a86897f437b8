"""What the groups of verbs share. `Admin` in `service.py` is all of them in one class, as the engine is."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from geartrain.admin.verbs import LOCAL, Verb
from geartrain.admin.views import ClusterCounts, DumpPage, LoadView, NodeView, ReloadView, System, UserView
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import JobState
from geartrain.rights import Identity
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop

_PAGE_MOST: Final = 1000

# Called with name, value and whether to replace; returns whether it was loaded, and whether there was one.
LoadValue = Callable[[str, bytes, bool], tuple[bool, bool]]


def method_arguments(verb: Verb, values: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a verb's method from the values of its arguments."""
    if not verb.query:
        return values
    own = {name: value for name, value in values.items() if name == LOCAL.name}
    return {"query": JobQuery.parse(**{name: value for name, value in values.items() if name not in own}), **own}


class ClusterInfo(Protocol):
    """The servers that share the store of this one. `server/cluster_info.py` implements it."""

    def nodes(self, jobs: int, workers: int) -> list[NodeView]:
        """All of them, as they were seen last; `jobs` and `workers` is how many this server has."""

    async def look(self) -> None:
        """Apply what other servers have saved in the store."""

    def counts(self) -> ClusterCounts:
        """What this server knows of the cluster, and has done for it."""

    async def drain(self, name: str) -> None:
        """Ask a server to stop when its running jobs are done; an AdminError if that is not possible."""

    async def fence(self, name: str) -> None:
        """Take the jobs from a server by force; an AdminError if that is not possible."""


class ServerInfo(Protocol):
    """The server around the engine: its doors, its store, its memory. `server/info.py` implements it."""

    cluster: ClusterInfo | None  # None: the store is not shared

    def connections(self) -> int:
        """The number of open connections of all doors."""

    def users(self) -> list[UserView]:
        """Every user, and what it has of its quota."""

    async def system(self) -> System:
        """Version, platform, doors and store."""

    def kept_seconds(self, state: JobState) -> float | None:
        """How long jobs that ended in a state are kept; None: there is no limit of time."""

    async def dump(self, part: str, number: int, after: int) -> DumpPage:
        """A page of one part of a dump of this server; the header begins one."""

    async def load(self, lines: bytes, replace: bool, load_value: LoadValue) -> LoadView:
        """Load a dump; an AdminError says why it cannot be."""

    def reload(self, caller: Identity | None) -> ReloadView:
        """Read users, tokens and certificates again; a SettingsError says why nothing was changed."""


class AdminBase:
    """The engine, its tick, and the server around them."""

    def __init__(self, tick_loop: TickLoop, server: ServerInfo, archive: RecordArchive) -> None:
        self.tick_loop = self._tick_loop = tick_loop
        self._engine = tick_loop.engine
        self._server = server
        self._archive = archive

    def _begin_change(self, function: bytes = b"") -> None:
        """Set the engine's time. Every verb that changes something calls this first."""
        if self._is_builtin(function):
            raise AdminError("bad-request", f"{printable(function)} is a function of the server itself")
        self._tick_loop.begin_tick()

    def _is_builtin(self, function: bytes) -> bool:
        return function in self._engine.builtin_workers


def printable(name: bytes) -> str:
    """A name for a message, without characters that control a terminal.

    >>> printable(b"mail"), printable(b"a\\x1b[2J")
    ('mail', 'a\\\\x1b[2J')
    """
    return ascii(name.decode("utf-8", "replace"))[1:-1]


def page_limit(limit: int) -> int:
    """The length of a page, for the `limit` that was sent."""
    if limit < 1:
        raise AdminError("bad-request", f"limit must be at least 1: {limit}")
    return min(limit, _PAGE_MOST)
