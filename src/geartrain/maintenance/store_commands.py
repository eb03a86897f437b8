"""What `geartrain dump`, `load` and `compact` do with a store, by its kind."""

import urllib.parse
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from geartrain.maintenance import store_file
from geartrain.maintenance.dump_writer import DumpCounts, Notice, Progress
from geartrain.maintenance.store_file import CompactSizes
from geartrain.server import options
from geartrain.server.config.settings import Settings
from geartrain.store import url
from geartrain.store.load_counts import Summary as Summary


class StoreCommands(Protocol):
    """One store, not opened."""

    @property
    def name(self) -> str:
        """For people: its path, or its URL without passwords."""

    def require_existing(self) -> None:
        """Raise StoreError if there is no such store."""

    def write_dump(
        self, with_records: bool, write: Callable[[bytes], object], notice: Notice, progress: Progress
    ) -> DumpCounts:
        """Write a dump of the store as it is now; servers may use it meanwhile."""

    def load_dump(
        self, lines: Iterable[bytes], name: str, replace: bool, notice: Notice, progress: Progress
    ) -> Summary:
        """Load a dump, all or nothing; errors call the dump `name`."""

    def compact(self) -> CompactSizes | None:
        """Return free space to the disk; None: the store does that by itself."""


class SqliteCommands:
    """Implements `StoreCommands` for a file."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store = store_file.store(settings)

    @property
    def name(self) -> str:
        return str(self._store.path)

    def require_existing(self) -> None:
        store_file.existing(self._settings)

    def write_dump(
        self, with_records: bool, write: Callable[[bytes], object], notice: Notice, progress: Progress
    ) -> DumpCounts:
        return store_file.write_dump(self._store.path, with_records, write, notice, progress)

    def load_dump(
        self, lines: Iterable[bytes], name: str, replace: bool, notice: Notice, progress: Progress
    ) -> Summary:
        """No server may have the file open."""
        return store_file.load_dump(self._store, lines, name, replace, notice, progress)

    def compact(self) -> CompactSizes:
        """No server may have the file open."""
        return store_file.compact(self._store)


def _postgresql(settings: Settings) -> StoreCommands:
    url.create_store(settings.store, options.result_limits(settings))  # says it if psycopg is not installed
    from geartrain.maintenance.postgresql_store import PostgresqlCommands

    return PostgresqlCommands(settings)


# By the scheme of the URL. A memory store is in a server; `SqliteCommands` says that it has no file.
_KINDS: Final[dict[str, Callable[[Settings], StoreCommands]]] = {url.POSTGRESQL: _postgresql}


def find(settings: Settings) -> StoreCommands:
    """The store that `geartrain serve` would use."""
    return _KINDS.get(urllib.parse.urlsplit(settings.store).scheme, SqliteCommands)(settings)
