"""Maintenance of a PostgreSQL store: dump it, load a dump into it. Servers may use it meanwhile."""

from collections.abc import Callable, Iterable

from geartrain.errors import StoreError
from geartrain.maintenance import dump_writer
from geartrain.maintenance.dump_writer import DumpCounts, Notice, Progress
from geartrain.server import options
from geartrain.server.config import settings as table
from geartrain.server.config.settings import Settings
from geartrain.store import dump, postgresql_loader
from geartrain.store.load_counts import Summary
from geartrain.store.postgresql_connection import Target
from geartrain.store.postgresql_snapshot import PostgresqlSnapshot


class PostgresqlCommands:
    """Implements `StoreCommands` for a schema of a database."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._target = Target.of(settings.store)

    @property
    def name(self) -> str:
        """The URL without passwords."""
        return self._target.shown

    def require_existing(self) -> None:
        """The dump itself says if there is none."""

    def write_dump(
        self, with_records: bool, write: Callable[[bytes], object], notice: Notice, progress: Progress
    ) -> DumpCounts:
        """Write a dump of the jobs of all servers, as they are now."""
        with PostgresqlSnapshot(self._target) as snapshot:
            return dump_writer.write(snapshot, with_records, write, notice, progress)

    def load_dump(
        self, lines: Iterable[bytes], name: str, replace: bool, notice: Notice, progress: Progress
    ) -> Summary:
        """Load a dump, all or nothing; errors call the dump `name`."""
        limits, prefix = options.result_limits(self._settings), table.handle_prefix(self._settings)
        try:
            return postgresql_loader.load(self._target, limits, prefix, lines, replace, notice, progress)
        except dump.DumpError as error:
            raise StoreError(f"{name}: {error}; nothing was loaded") from None

    def compact(self) -> None:
        """Nothing is to be done: PostgreSQL does it by itself."""
