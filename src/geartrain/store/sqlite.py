"""The SQLite store: one file, one writer, and a commit that has reached the disk when it returns.

Write-ahead log with synchronous=FULL: a commit is one append to the log and one fsync of it, however many jobs it
holds. The log is copied into the file ("checkpointed") by the same thread after a thousand pages, and then
overwritten from its start, so it stays small; pages that finished jobs leave are used again. Overwriting takes half the
time of appending, since the file system need not note a new length; so the log is given its length when it is opened.
"""

import contextlib
import functools
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from geartrain.errors import StoreError
from geartrain.model import id_from_handle
from geartrain.store import contract, lock, rows, salvage, schema

_PAGES_PER_CHECKPOINT: Final = 1000
_ROOM_TO_STRETCH: Final = 16  # the disk has to have so many times the length of the log
_CACHE: Final = -32 * 1024  # KiB, as SQLite wants to be told
_SMALL_CACHE: Final = 10  # pages
_ROWS_PER_READ: Final = 2000
_PRUNED_AT_ONCE: Final = 1000
_RESULT_LIMIT: Final = 64 * 1024
_BUSY_MILLISECONDS: Final = 5000
_BEFORE_ALL: Final = -(2**63)

_COLUMNS: Final = ", ".join(contract.COLUMNS)
_DOOR: Final = contract.COLUMNS.index("door")  # and after it the reason
_RECORD_COLUMNS: Final = ", ".join(contract.RECORD_COLUMNS)
_SAVE: Final = f"INSERT OR REPLACE INTO jobs ({_COLUMNS}) VALUES ({', '.join('?' * len(contract.COLUMNS))})"
_REMOVE: Final = "DELETE FROM jobs WHERE id = ?"
_RECORD: Final = f"INSERT INTO records ({_RECORD_COLUMNS}) VALUES ({', '.join('?' * len(contract.RECORD_COLUMNS))})"
_SEARCHED: Final = "instr(handle || x'00' || function || x'00' || unique_key || x'00' || reason, ?)"
_KEEP: Final = "INSERT OR REPLACE INTO kept VALUES (?, ?)"
_SET_META: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?)"

T = TypeVar("T")

_log = logging.getLogger("geartrain.store")


class SqliteStore:
    """Jobs and records in one file."""

    durable = True

    def __init__(self, path: str | Path, result_limit: int = _RESULT_LIMIT) -> None:
        self.path = Path(path)
        self.result_limit = result_limit
        self._lock = lock.FileLock(self.path)
        self._connection: apsw.Connection | None = None
        self._suspect = False  # SQLite has complained of damage since it was opened
        self._log_pages = 0  # in the write-ahead log
        self._file = (0, 0)  # which one is open

    def open(self) -> int:
        """Lock, repair and migrate the file; the first id that was never promised."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {self.path.parent}: {error.strerror}") from None
        self._lock.take()
        try:
            salvage.resume(self.path)
            # Payloads may be anybody's secrets; SQLite gives its other files the permissions of this one.
            os.close(os.open(self.path, os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connect_or_salvage()
            self._stretch_log()
            next_id = self._meta("next_id", 1)
            self._set_meta("clean", 0)
            return next_id
        except (StoreError, OSError, apsw.Error) as error:
            self._disconnect()
            self._lock.release()
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"cannot open {self.path}: {_reason(error)}") from None

    def jobs(self, kind: type[contract.J]) -> Iterator[contract.J]:
        """Every job of the file, by id; rows that are no jobs are moved to the table `broken`."""
        last = _BEFORE_ALL
        while True:
            chunk = self._read(functools.partial(_read_jobs, after=last))
            for row in chunk:
                try:
                    yield rows.job(row, kind)
                except rows.BrokenRowError as broken:
                    self._set_aside(row, str(broken))
            if not chunk:
                return
            last = chunk[-1][0]

    def saved_values(self) -> dict[str, bytes]:
        """Every value that was kept under a name."""
        found: list[Any] = self._read(lambda connection: connection.execute("SELECT name, value FROM kept").fetchall())
        return dict(found)

    def commit(self, batch: contract.Batch) -> None:
        """One transaction, one fsync."""
        finished = {record.id for record in batch.finished}
        saved = [row for row in batch.saved_jobs if row[0] not in finished] if finished else batch.saved_jobs
        try:
            connection = self._connected()
            self._check_place()
            with connection:
                if saved:
                    connection.executemany(_SAVE, saved)
                if finished:
                    connection.executemany(_REMOVE, [(id,) for id in finished])
                    connection.executemany(_RECORD, map(self._cut, batch.finished))
                if batch.saved_values:
                    connection.executemany(_KEEP, list(batch.saved_values.items()))
                if batch.ids_until:
                    connection.execute(_SET_META, ("next_id", batch.ids_until))
        except Exception as error:
            self._roll_back(error)
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None
        if self._log_pages >= _PAGES_PER_CHECKPOINT:
            self._checkpoint(connection)

    def records(self, query: contract.Query) -> list[contract.Record]:
        """From a connection of its own, so that it may be asked from any thread and holds up no commit."""
        try:
            with contextlib.closing(_connect(self.path, apsw.SQLITE_OPEN_READONLY)) as connection:
                statement, values = _select_records(connection, query)
                return [rows.record(row) for row in connection.execute(statement, values)]
        except apsw.Error as error:
            raise StoreError(f"cannot read {self.path}: {_reason(error)}") from None

    def prune(self, before: float, keep: int) -> int:
        """Forget a bounded number of the oldest records, so that it never holds up a commit for long."""
        try:
            connection = self._connected()
            newest = connection.execute("SELECT max(seq) FROM records").get or 0
            oldest: list[Any] = connection.execute(
                f"SELECT seq, finished_at FROM records ORDER BY seq LIMIT {_PRUNED_AT_ONCE}"
            ).fetchall()
            # Only from the front, whatever the clock did: so what is left is always a row of numbers without gaps.
            old = list(itertools.takewhile(lambda each: each[1] < before or each[0] <= newest - keep, oldest))
            if old:
                with connection:
                    connection.execute("DELETE FROM records WHERE seq <= ?", (old[-1][0],))
            return len(old)
        except apsw.Error as error:
            self._roll_back(error)
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """For operators, while no server serves: what happens inside is durable at its end, all or nothing."""
        try:
            with self._connected() as connection:
                yield connection
        except apsw.Error as error:
            self._roll_back(error)
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None

    def compact(self) -> None:
        """Give the space that finished jobs left back to the disk. It takes twice what is in use meanwhile."""
        try:
            connection = self._connected()
            connection.pragma("temp_store", "FILE")  # the whole of it is copied there, so not into memory
            connection.execute("VACUUM")
            connection.pragma("wal_checkpoint", "TRUNCATE")
        except apsw.Error as error:
            self._roll_back(error)
            raise StoreError(f"cannot compact {self.path}: {_reason(error)}; it is as it was") from None

    def close(self, next_id: int) -> None:
        """Remember the next id and that the file was left in good order; give back the lock."""
        try:
            connection = self._connected()
            self._set_meta("next_id", next_id)
            self._set_meta("clean", int(not self._suspect))
            connection.pragma("wal_checkpoint", "TRUNCATE")
        except (apsw.Error, StoreError) as error:
            _log.warning("the store could not be closed in good order", extra=_fields(self.path, _reason(error)))
        finally:
            self._disconnect()
            self._lock.release()

    def _connect_or_salvage(self) -> None:
        """Open the file; one that is damaged is set aside, and what can be read of it goes into a new one."""
        existed = self.path.exists() and self.path.stat().st_size > 0
        try:
            salvage.check_length(self.path)
            connection = self._connected()
            version = schema.migrate(connection, str(self.path))
            if existed and version and version < len(schema.MIGRATIONS):
                _log.info("the store was brought up to date", extra=_fields(self.path, f"from layout {version}"))
            if existed and not self._meta("clean", 0):
                salvage.check(connection)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            if isinstance(error, apsw.NotADBError) and not self._lock.known:
                raise StoreError(f"{self.path} is not a store; use another file") from None
            self._renew(error)

    def _stretch_log(self) -> None:
        """Fill the log with pages that are not committed, so that the next commits write over them.

        With a small cache SQLite writes pages out before their transaction ends. It is worth a moment and four
        megabytes, not the last of a disk, and what goes wrong is left to the first commit to find.
        """
        connection = self._connected()
        length = _PAGES_PER_CHECKPOINT * int(connection.pragma("page_size"))
        if _length(f"{self.path}-wal") >= length or _free(self.path) < _ROOM_TO_STRETCH * length:
            return
        connection.pragma("cache_size", _SMALL_CACHE)
        try:
            connection.execute("BEGIN IMMEDIATE; CREATE TABLE stretch (bytes)")
            connection.execute("INSERT INTO stretch VALUES (zeroblob(?))", (length,))
        except apsw.Error as error:
            _log.debug("the log could not be stretched", extra=_fields(self.path, _reason(error)))
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.pragma("cache_size", _CACHE)

    def _renew(self, damage: apsw.Error) -> None:
        self._disconnect()
        salvage.renew(self.path, _reason(damage))

    def _read(self, reading: Callable[[apsw.Connection], T]) -> T:
        """Damage that only reading finds is dealt with like damage that was found at once."""
        try:
            return reading(self._connected())
        except apsw.CorruptError as error:
            self._renew(error)
            return reading(self._connected())

    def _check_place(self) -> None:
        """SQLite would go on writing to a file that somebody has removed or replaced, and all of it would be lost."""
        if _identity(self.path) != self._file:
            raise StoreError("somebody has removed or replaced it; put it back, or restart the server")

    def _checkpoint(self, connection: apsw.Connection) -> None:
        """Copy the log into the file. What is committed is safe in the log if that fails; the next commit tries."""
        try:
            connection.wal_checkpoint()
        except apsw.Error as error:
            _log.warning("the log could not be copied into the file", extra=_fields(self.path, _reason(error)))

    def _note_log(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _roll_back(self, error: Exception) -> None:
        """Leave a failed transaction behind.

        The same connection goes on if it can: it knows where the log ended before, and writes over what the
        failed commit left there. A new one would read the log, and might find that commit complete in it.
        """
        self._suspect = self._suspect or isinstance(error, (apsw.CorruptError, apsw.NotADBError))
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            self._disconnect()

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            connection = _connect(self.path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            self._connection = connection
            schema.recognise(connection, str(self.path))  # before anything is changed in a file that is not ours
            for pragma, value in (
                ("journal_mode", "WAL"), ("synchronous", "FULL"),
                ("journal_size_limit", 64 * 1024 * 1024), ("cache_size", _CACHE), ("temp_store", "MEMORY"),
            ):  # fmt: skip
                connection.pragma(pragma, value)
            self._file = _identity(self.path)
            connection.set_wal_hook(self._note_log)  # in the place of SQLite's own, which hides what goes wrong
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(apsw.Error):
                connection.close(True)

    def _meta(self, name: str, default: int) -> int:
        found = self._connected().execute("SELECT value FROM meta WHERE name = ?", (name,)).get
        return default if found is None else int(found)

    def _set_meta(self, name: str, value: int) -> None:
        try:
            self._connected().execute(_SET_META, (name, value))
        except apsw.Error as error:
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None

    def _cut(self, record: contract.Record) -> contract.Record:
        if len(record.result) <= self.result_limit:
            return record
        return record._replace(result=record.result[: self.result_limit])

    def _set_aside(self, row: tuple[Any, ...], complaint: str) -> None:
        _log.error("a row is no job and was set aside", extra=_fields(self.path, f"id {row[0]}: {complaint}"))
        marks = ", ".join("?" * (len(row) + 2))
        connection = self._connected()
        with contextlib.suppress(apsw.Error), connection:  # where it cannot be moved, it is reported each time
            connection.execute(f"INSERT INTO broken VALUES ({marks})", (time.time(), complaint, *row))
            connection.execute(_REMOVE, (row[0],))


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags)
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    return connection


def _identity(path: Path) -> tuple[int, int]:
    """Which file it is that has this name now."""
    try:
        status = os.stat(path)
    except OSError:
        return (-1, -1)
    return (status.st_dev, status.st_ino)


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _free(path: Path) -> int:
    """How much the disk has left for us."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


def _select_records(connection: apsw.Connection, query: contract.Query) -> tuple[str, tuple[Any, ...]]:
    """The statement of a query and its values; the file may be of an older version."""
    expressions = schema.expressions(connection, "records", contract.RECORD_COLUMNS)
    door = expressions[contract.RECORD_COLUMNS.index("door")]
    tests: list[tuple[str, Any]] = [
        ("handle = ?", query.handle), ("function = ?", query.function),
        ("finished_at >= ?", query.since), ("finished_at < ?", query.until), ("id < ?", query.below),
        (f"{door} = ?", query.door), (_SEARCHED, query.search),
    ]  # fmt: skip
    chosen = [(test, value) for test, value in tests if value]
    if id := id_from_handle(query.handle):
        chosen.append(("id = ?", id))  # which has an index
    if query.state >= 0:
        chosen.append(("state = ?", query.state))
    where = "WHERE " + " AND ".join(test for test, _ in chosen) if chosen else ""
    order = "id" if query.by_id else "seq"
    statement = f"SELECT {', '.join(expressions)} FROM records {where} ORDER BY {order} DESC LIMIT ?"
    return statement, (*(value for _, value in chosen), query.limit)


def _read_jobs(connection: apsw.Connection, after: int) -> list[tuple[Any, ...]]:
    """The next rows; one with text that is no text is read as bytes, to be found broken."""
    try:
        statement = f"SELECT {_COLUMNS} FROM jobs WHERE id > ? ORDER BY id LIMIT {_ROWS_PER_READ}"
        return connection.execute(statement, (after,)).fetchall()
    except UnicodeDecodeError:
        columns = ", ".join(schema.expressions(connection, "jobs", contract.COLUMNS, raw_text=True))
        statement = f"SELECT {columns} FROM jobs WHERE id > ? ORDER BY id LIMIT {_ROWS_PER_READ}"
        return [_with_text(row) for row in connection.execute(statement, (after,))]


def _with_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return (*row[:_DOOR], row[_DOOR].decode(), row[_DOOR + 1].decode(), *row[_DOOR + 2 :])
    except UnicodeDecodeError:
        return row


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _fields(path: Path, why: str) -> dict[str, dict[str, str]]:
    return {"fields": {"file": str(path), "why": why}}


def disk_size(path: Path) -> int:
    """How many bytes a store's file and its write-ahead log take on disk."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
