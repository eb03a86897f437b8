"""A read-only view of a SQLite store at one moment, also while a server writes to it.

It takes no lock: with SQLite's write-ahead log, a reader sees what was committed when it began, and a server goes on
committing. While a snapshot is open, the server's log cannot be checkpointed and grows, so close it soon.
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
from geartrain.store import contract, dump, rows, schema, sqlite_failed_jobs, sqlite_records

_BUSY_MILLISECONDS: Final = 5000
_STEPS_PER_CHECK: Final = 10_000  # of SQLite's virtual machine, between two checks of the time limit; about 10 ms

Notice = Callable[[str], None]


class DamagedError(StoreError):
    """The file exists, but SQLite cannot read it."""


class UnfinishedError(Exception):
    """A check took longer than its time limit."""


class Snapshot:
    """A context manager: the view is fixed when it is entered. StoreError says why a file cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        if not os.path.isfile(self.path):
            raise StoreError(f"{self.path} does not exist")
        if not os.access(self.path, os.R_OK):
            raise StoreError(f"{self.path} cannot be read by this user; run this as the server's user")
        with _readable_errors(self.path):
            self._connection = _connect(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(apsw.Error):
            self._connection.close(True)

    @property
    def layout(self) -> int:
        """The layout of the file; 0: it is not a Geartrain store."""
        with _readable_errors(self.path):
            is_store = self._connection.pragma("application_id") == schema.APPLICATION_ID
            return int(self._connection.pragma("user_version")) if is_store else 0

    def require_known_layout(self) -> None:
        """Raise StoreError if the contents cannot be read by this version."""
        if not self.layout:
            raise StoreError(f"{self.path} is not a Geartrain store")
        if self.layout > len(schema.MIGRATIONS):
            raise StoreError(
                f"{self.path} was written by a newer Geartrain (layout {self.layout}, "
                f"this one knows {len(schema.MIGRATIONS)}); use that version"
            )

    @property
    def next_id(self) -> int:
        """The first id that was never reserved."""
        return self._number("SELECT value FROM meta WHERE name = 'next_id'", 1)

    @property
    def clean(self) -> bool:
        """Whether the last server closed the file cleanly."""
        return bool(self._number("SELECT value FROM meta WHERE name = 'clean'", 0))

    @property
    def broken(self) -> int:
        """How many invalid rows are in the table `broken`."""
        return self._number("SELECT count(*) FROM broken", 0) if self._has("broken") else 0

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes in use, and the unused bytes within the file."""
        with _readable_errors(self.path):
            page, pages, free = (
                int(self._connection.pragma(name)) for name in ("page_size", "page_count", "freelist_count")
            )
        return (pages - free) * page, free * page

    def jobs(self, notice: Notice) -> Iterator[Job]:
        """Every unfinished job by id; invalid rows are skipped, with a call of `notice`."""
        for row in self._select("jobs", contract.COLUMNS, "id"):
            try:
                yield rows.job(row, Job)
            except rows.BrokenRowError as broken:
                notice(f"row {row[0]} skipped: {broken}")

    def records(self, only_whole: bool = False) -> Iterator[contract.Record]:
        """Every record, the oldest first, with all that is kept of its result.

        With `only_whole`, those of failed jobs that are kept whole.
        """
        if not self._has("records") or (only_whole and not self._has("failed_jobs")):
            return
        where = "WHERE id IN (SELECT id FROM failed_jobs)" if only_whole else ""
        for row in self._select(f"records {where}", contract.RECORD_COLUMNS, "seq"):
            yield self._with_result(rows.record(row))

    def failed_job(self, record: contract.Record) -> Job | None:
        """The job of a record as a whole, if it ended badly and is kept."""
        if record.state == contract.DONE:
            return None
        with _readable_errors(self.path):
            (job,) = sqlite_failed_jobs.read(self._connection, [record.id], Job, 0)
        return job

    def saved_values(self) -> list[tuple[str, bytes]]:
        """Every value that was saved under a name, by name; slots that were cleared are left out."""
        if not self._has("kept"):
            return []
        with _readable_errors(self.path):
            pairs: Any = self._connection.execute("SELECT name, value FROM kept WHERE value <> x'' ORDER BY name")
            return list(pairs)

    def waiting_and_dead(self, seconds: float) -> tuple[int, int]:
        """Return how many jobs are not dead, and how many are; raise UnfinishedError after `seconds`, if not 0."""
        statement = f"SELECT count(*), coalesce(sum(state = {int(JobState.DEAD)}), 0) FROM jobs"
        with self._within(seconds):
            counts: Any = self._connection.execute(statement).get
        return counts[0] - counts[1], counts[1]

    def damage(self, seconds: float, thorough: bool) -> list[str]:
        """Return the problems that SQLite finds in the file; `thorough` includes the indexes.

        Raise UnfinishedError after `seconds`, if not 0.
        """
        pragma = "integrity_check" if thorough else "quick_check"
        with self._within(seconds):
            problems = [str(row[0]) for row in self._connection.execute(f"PRAGMA {pragma}(10)")]
        return [] if problems == ["ok"] else problems

    def _with_result(self, record: contract.Record) -> contract.Record:
        if not record.result_size:
            return record
        return dump.with_result(record, record.result + sqlite_records.read_rest(self._connection, record.id))

    def _number(self, statement: str, default: int) -> int:
        with _readable_errors(self.path):
            value = self._connection.execute(statement).get
        return default if value is None else int(value)

    def _has(self, table: str) -> bool:
        with _readable_errors(self.path):
            return bool(self._connection.table_exists("main", table))

    def _select(self, table: str, columns: tuple[str, ...], order: str) -> Iterator[tuple[Any, ...]]:
        """Read text as bytes and decode it where possible: text that is not UTF-8 must not end the iteration."""
        texts = [index for index, name in enumerate(columns) if name in schema.TEXTS]
        with _readable_errors(self.path):
            selected = ", ".join(schema.expressions(self._connection, table.split()[0], columns, raw_text=True))
            for row in self._connection.execute(f"SELECT {selected} FROM {table} ORDER BY {order}"):
                values = list(row)
                for index in texts:
                    values[index] = _decoded(values[index])
                yield tuple(values)

    @contextlib.contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Interrupt the query and raise UnfinishedError after this time; 0: no limit."""
        deadline = time.monotonic() + seconds if seconds else float("inf")
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_PER_CHECK)
        try:
            with _readable_errors(self.path):
                yield
        except apsw.InterruptError:
            raise UnfinishedError from None
        finally:
            self._connection.set_progress_handler(None)


def _connect(path: Path) -> apsw.Connection:
    """Open the file and fix the view. SQLite needs a shared-memory file beside it, unless the file is immutable."""
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
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the first query fixes the view
    return connection


def _decoded(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


@contextlib.contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into StoreErrors that name the file."""
    try:
        yield
    except apsw.InterruptError:
        raise
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from None
    except apsw.Error as error:
        raise StoreError(f"cannot read {path}: {error}") from None
