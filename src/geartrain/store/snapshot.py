"""A SQLite store's file as it is at one moment, read beside whoever writes it, and never changed.

It takes no lock: SQLite's write-ahead log lets one read what was committed when the reading began while a server
goes on committing. As long as a snapshot is open that server's log can only grow, so it is kept no longer
than needed.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import apsw

from geartrain.errors import StoreError
from geartrain.model import Job, JobState
from geartrain.store import contract, rows, schema

_BUSY_MILLISECONDS: Final = 5000
_STEPS_BETWEEN_LOOKS: Final = 10_000  # of SQLite's machine, at the clock: some hundred times a second

Complain = Callable[[str], None]


class DamagedError(StoreError):
    """The file is there, and SQLite cannot make sense of it."""


class UnfinishedError(Exception):
    """A look at the whole file took longer than it was allowed to."""


class Snapshot:
    """Open from `with` to its end; a StoreError says why the file cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        if not os.path.isfile(self.path):
            raise StoreError(f"there is no store at {self.path}")
        if not os.access(self.path, os.R_OK):
            raise StoreError(f"{self.path} cannot be read by this user; run this as the server's user")
        with _told(self.path):
            self._connection = _connect(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(apsw.Error):
            self._connection.close(True)

    @property
    def layout(self) -> int:
        """The version of the file's layout; 0: it is not one of ours."""
        with _told(self.path):
            ours = self._connection.pragma("application_id") == schema.APPLICATION_ID
            return int(self._connection.pragma("user_version")) if ours else 0

    def require_known_layout(self) -> None:
        """A StoreError if the rest cannot be asked for."""
        if not self.layout:
            raise StoreError(f"{self.path} is not a store of Geartrain")
        if self.layout > len(schema.MIGRATIONS):
            raise StoreError(
                f"{self.path} was written by a newer Geartrain (layout {self.layout}, "
                f"this one knows {len(schema.MIGRATIONS)}); use that version"
            )

    @property
    def next_id(self) -> int:
        """The first id that was never promised."""
        return self._number("SELECT value FROM meta WHERE name = 'next_id'", 1)

    @property
    def clean(self) -> bool:
        """Whether the last server that had the file closed it in good order."""
        return bool(self._number("SELECT value FROM meta WHERE name = 'clean'", 0))

    @property
    def broken(self) -> int:
        """How many rows were no jobs and have been set aside."""
        return self._number("SELECT count(*) FROM broken", 0) if self._has("broken") else 0

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes that are in use, and those that finished jobs left."""
        with _told(self.path):
            page, pages, free = (
                int(self._connection.pragma(name)) for name in ("page_size", "page_count", "freelist_count")
            )
        return (pages - free) * page, free * page

    def jobs(self, complain: Complain) -> Iterator[Job]:
        """Every job that is not over, by id; told to `complain` and left out: what is none."""
        for row in self._select("jobs", contract.COLUMNS, "id"):
            try:
                yield rows.job(row, Job)
            except rows.BrokenRowError as broken:
                complain(f"row {row[0]} skipped: {broken}")

    def records(self) -> Iterator[contract.Record]:
        """Every record, the oldest first."""
        if not self._has("records"):
            return
        for row in self._select("records", contract.RECORD_COLUMNS, "seq"):
            yield rows.record(row)

    def waiting_and_dead(self, seconds: float) -> tuple[int, int]:
        """How many jobs wait, and how many are dead."""
        statement = f"SELECT count(*), coalesce(sum(state = {int(JobState.DEAD)}), 0) FROM jobs"
        with self._within(seconds):
            counts: Any = self._connection.execute(statement).get
        return counts[0] - counts[1], counts[1]

    def damage(self, seconds: float, thorough: bool) -> list[str]:
        """What SQLite finds wrong with the file; nothing, if it is sound. `thorough` looks at the indexes too."""
        pragma = "integrity_check" if thorough else "quick_check"
        with self._within(seconds):
            found = [str(row[0]) for row in self._connection.execute(f"PRAGMA {pragma}(10)")]
        return [] if found == ["ok"] else found

    def _number(self, statement: str, default: int) -> int:
        with _told(self.path):
            found = self._connection.execute(statement).get
        return default if found is None else int(found)

    def _has(self, table: str) -> bool:
        with _told(self.path):
            return bool(self._connection.table_exists("main", table))

    def _select(self, table: str, columns: tuple[str, ...], order: str) -> Iterator[tuple[Any, ...]]:
        """Text is asked for as bytes: what is no text must not end the reading."""
        places = [number for number, name in enumerate(columns) if name in schema.TEXTS]
        with _told(self.path):
            selected = ", ".join(schema.expressions(self._connection, table, columns, raw_text=True))
            for row in self._connection.execute(f"SELECT {selected} FROM {table} ORDER BY {order}"):
                values = list(row)
                for place in places:
                    values[place] = _text(values[place])
                yield tuple(values)

    @contextlib.contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Give up, with an UnfinishedError, after a time. 0: never."""
        deadline = time.monotonic() + seconds if seconds else float("inf")
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
        try:
            with _told(self.path):
                yield
        except apsw.InterruptError:
            raise UnfinishedError from None
        finally:
            self._connection.set_progress_handler(None)


def _connect(path: Path) -> apsw.Connection:
    """Begin to read. SQLite needs to put shared memory beside the file, unless nobody can write there anyway."""
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)
    try:
        return _begin(connection)
    except apsw.CantOpenError:
        connection.close(True)
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(
                f"{path} has changes in {log.name}, which cannot be read in a folder that cannot be written; "
                "copy both elsewhere, and name the copy"
            ) from None
        url = f"{path.absolute().as_uri()}?immutable=1"
        return _begin(apsw.Connection(url, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI))


def _begin(connection: apsw.Connection) -> apsw.Connection:
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the first look fixes the moment
    return connection


def _text(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """SQLite's complaints in words for people."""
    try:
        yield
    except apsw.InterruptError:
        raise
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from None
    except apsw.Error as error:
        raise StoreError(f"cannot read {path}: {error}") from None
