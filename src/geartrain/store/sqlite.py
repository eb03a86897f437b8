"""The SQLite store: one file, one writer; a commit is on disk when it returns.

It uses a write-ahead log with synchronous=FULL: a commit is one write to the log and one fsync, however many jobs it
has. After a thousand pages the log is copied into the file (`sqlite_checkpoints.py`) and overwritten from its start, so
it stays small. Pages of finished jobs are reused. Overwriting takes half the time of appending, because the file system
need not update the length of the file, so the log is preallocated when the store is opened.
"""

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from geartrain.errors import StoreError
from geartrain.model import FailedPayload, JobState
from geartrain.store import (
    contract,
    file_identity,
    lock,
    rows,
    salvage,
    schema,
    sqlite_checkpoints,
    sqlite_failed_jobs,
    sqlite_jobs,
    sqlite_logs,
    sqlite_records,
)
from geartrain.store.file_identity import StoreFiles
from geartrain.store.transaction import transaction

_FREE_TO_PREALLOCATE: Final = 16  # the log is not preallocated if the disk has less space than this many logs
_CACHE: Final = -32 * 1024  # KiB; SQLite takes negative numbers as KiB
_SMALL_CACHE: Final = 10  # pages
_BUSY_MILLISECONDS: Final = 5000
_BELOW_ALL_IDS: Final = -(2**63)
_LIMITS: Final = contract.ResultLimits()

_SAVE_VALUE: Final = "INSERT OR REPLACE INTO kept VALUES (?, ?)"
_SET_META: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?)"

T = TypeVar("T")

_log = logging.getLogger("geartrain.store")


class SqliteStore:
    """Jobs and records in one file."""

    durable = True

    def __init__(self, path: str | Path, limits: contract.ResultLimits = _LIMITS) -> None:
        # SQLite resolves links too: its other files are beside the file itself.
        self.path = Path(os.path.realpath(path))
        self.record_table = sqlite_records.RecordTable(limits)
        self._lock = lock.FileLock(self.path)
        self._connection: apsw.Connection | None = None
        self._damaged = False  # SQLite has reported damage since the store was opened
        self.checkpoints = sqlite_checkpoints.LogCheckpoints(self.path, self._connect_to_log)
        self._files = StoreFiles(self.path)

    def open(self) -> int:
        """Lock, repair and migrate the file; return the first id that was never reserved."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot create the folder {self.path.parent}: {error.strerror}") from None
        file_identity.require_regular(self.path)
        self._lock.acquire()
        try:
            if self.path.exists():
                self._lock.acquire_database()
            salvage.resume(self.path)
            self._connect_or_salvage()
            self._preallocate_log()
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
        """Every job by id; invalid rows are moved to the table `broken`."""
        return self._jobs(kind, lambda: sqlite_jobs.read)

    def jobs_within(self, kind: type[contract.J], has_room: Callable[[], bool], warm: bytes) -> Iterator[contract.J]:
        """The same, without payloads when there is no room for them, but for those of the function `warm`."""
        read_cold = functools.partial(sqlite_jobs.read_cold, warm=warm)
        return self._jobs(kind, lambda: sqlite_jobs.read_few if has_room() else read_cold)

    def _jobs(self, kind: type[contract.J], reader: Callable[[], sqlite_jobs.ReadRows]) -> Iterator[contract.J]:
        last = _BELOW_ALL_IDS
        while True:
            chunk = self._read(functools.partial(_read_after, reader(), last))
            for row in chunk:
                try:
                    yield sqlite_jobs.job(row, kind)
                except rows.BrokenRowError as broken:
                    _log.error("invalid row moved to table broken", extra=_fields(self.path, f"id {row[0]}: {broken}"))
                    sqlite_jobs.quarantine(self._connected(), row, str(broken))
            if not chunk:
                return
            last = chunk[-1][0]

    def saved_values(self) -> dict[str, bytes]:
        """Every value that was saved under a name."""
        pairs: list[Any] = self._read(lambda connection: connection.execute("SELECT name, value FROM kept").fetchall())
        return dict(pairs)

    def commit(self, batch: contract.Batch) -> contract.CommitOutcome:
        """Write a batch in one transaction with one fsync."""
        try:
            connection = self._check_files()
            if batch.is_one_job:
                sqlite_jobs.save(connection, batch.accepted)  # one statement, which is a transaction by itself
            else:
                with transaction(connection):
                    self._write(connection, batch)
        except Exception as error:
            self._roll_back(error)
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None
        self.record_table.count_added(batch.finished)
        # A hook of SQLite would tell the same in the middle of the commit, and wait for Python's global lock there.
        self.checkpoints.committed(connection, _written_pages(connection))
        return contract.COMMITTED

    def _write(self, connection: apsw.Connection, batch: contract.Batch) -> None:
        """Write a batch within a transaction."""
        finished = {record.id for record in batch.finished}
        saved = batch.saved_jobs
        if finished:
            saved = [row for row in saved if row[0] not in finished]
        if batch.removed_records:
            revived = {row[0] for row in batch.revived}
            for id in batch.removed_records:
                self.record_table.remove(connection, id, keep_log=id in revived)
        sqlite_jobs.save(connection, saved)
        failed = sqlite_jobs.with_payloads(connection, batch.failed)
        if batch.removed_jobs:
            sqlite_jobs.remove(connection, batch.removed_jobs)
        if finished:
            sqlite_jobs.remove(connection, finished)
            self.record_table.add(connection, batch.finished)
        if failed:
            self.record_table.failed_jobs.add(connection, failed)
        if batch.logs:
            self.record_table.logs.add(connection, batch.logs)
        if batch.saved_values:
            connection.executemany(_SAVE_VALUE, list(batch.saved_values.items()))
        if batch.ids_until:
            connection.execute(_SET_META, ("next_id", batch.ids_until))

    def records(self, query: contract.Query) -> list[contract.Record]:
        """The last that finished first."""
        with self._reading() as connection:
            statement, values = schema.select_records(connection, query)
            return [rows.record(row) for row in connection.execute(statement, values)]

    def kept_result(self, record: contract.Record) -> bytes:
        """The result with the rest of a large one."""
        if record.result_kept <= len(record.result):
            return record.result
        with self._reading() as connection:
            return record.result + sqlite_records.read_rest(connection, record.id)

    def job_log(self, id: int) -> bytes:
        """The log of a job."""
        with self._reading() as connection:
            return sqlite_logs.read(connection, id)

    def job_payloads(self, ids: Sequence[int], longest: int = sys.maxsize) -> dict[int, bytes]:
        """The payloads of unfinished jobs."""
        with self._reading() as connection:
            return sqlite_jobs.payloads(connection, ids, longest)

    def find_payloads(self, ids: Sequence[int], text: bytes) -> list[int]:
        """The unfinished jobs in whose payloads a text is."""
        with self._reading() as connection:
            return sqlite_jobs.find(connection, ids, text)

    def payloads(self, ids: Sequence[int], longest: int) -> dict[int, FailedPayload]:
        """The payloads of failed jobs."""
        with self._reading() as connection:
            return sqlite_failed_jobs.payloads(connection, ids, longest)

    def ends(self, first: int, last: int) -> dict[int, JobState]:
        """How jobs have ended, by id."""
        with self._reading() as connection:
            return sqlite_records.ends(connection, first, last)

    def failed_jobs(self, ids: Sequence[int], kind: type[contract.J], most_bytes: int) -> list[contract.J | None]:
        """The failed jobs with these ids that are kept whole."""
        with self._reading() as connection:
            return sqlite_failed_jobs.read(connection, ids, kind, most_bytes)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """A separate connection, so that any thread may read and commits are not delayed."""
        try:
            with contextlib.closing(_connect(self.path, apsw.SQLITE_OPEN_READONLY)) as connection:
                yield connection
        except apsw.Error as error:
            raise StoreError(f"cannot read {self.path}: {_reason(error)}") from None

    def prune(self, now: float, retention: contract.Retention) -> int:
        """Remove a bounded number of records, so that commits are not delayed for long."""
        try:
            return self.record_table.prune(self._check_files(), now, retention)
        except (apsw.Error, StoreError, OSError) as error:
            self._roll_back(error)
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """For operators while no server runs: changes are durable at the end, all or nothing."""
        try:
            connection = self._connected()
            with transaction(connection):
                yield connection
        except apsw.Error as error:
            self._roll_back(error)
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None

    def compact(self) -> None:
        """Return unused space to the file system. Meanwhile it takes twice the space that is in use."""
        try:
            connection = self._connected()
            self.checkpoints.wait()
            connection.pragma("temp_store", "FILE")  # the whole file is copied there; it may not fit into memory
            connection.execute("VACUUM")
            connection.pragma("wal_checkpoint", "TRUNCATE")
        except apsw.Error as error:
            self._roll_back(error)
            raise StoreError(f"cannot compact {self.path}: {_reason(error)}; it was not changed") from None

    def close(self, next_id: int) -> None:
        """Save the next id, mark the file as closed cleanly, and release the lock."""
        try:
            connection = self._check_files()
            self.checkpoints.close()
            self._set_meta("next_id", next_id)
            self._set_meta("clean", int(not self._damaged))
            connection.pragma("wal_checkpoint", "TRUNCATE")
        except (apsw.Error, StoreError, OSError) as error:
            _log.warning("store was not closed cleanly", extra=_fields(self.path, _reason(error)))
        finally:
            self._disconnect()
            self._lock.release()

    def _connect_or_salvage(self) -> None:
        """Open and migrate the file; if it is damaged, replace it by a new file with the jobs that can be read."""
        self._lock.acquire_database()
        existed = self.path.stat().st_size > 0
        try:
            salvage.check_length(self.path)
            connection = self._connected()
            version = schema.migrate(connection, str(self.path))
            if existed and version and version < len(schema.MIGRATIONS):
                _log.info("store upgraded", extra=_fields(self.path, f"from layout {version}"))
            if existed and not self._meta("clean", 0):
                salvage.check(connection)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            if isinstance(error, apsw.NotADBError) and not self._lock.existed:
                raise StoreError(f"{self.path} is not a Geartrain store; use another file") from None
            self._salvage(error)

    def _preallocate_log(self) -> None:
        """Fill the log with uncommitted pages, which the next commits overwrite.

        With a small cache SQLite writes pages to the log before their transaction ends. It takes a moment and four
        megabytes, and is skipped on a nearly full disk. Errors are ignored: if they persist, the first commit fails.
        """
        connection = self._connected()
        length = sqlite_checkpoints.PAGES * int(connection.pragma("page_size"))
        if _size(f"{self.path}-wal") >= length or _free_space(self.path) < _FREE_TO_PREALLOCATE * length:
            return
        connection.pragma("cache_size", _SMALL_CACHE)
        try:
            connection.execute("BEGIN IMMEDIATE; CREATE TABLE preallocation (bytes)")
            connection.execute("INSERT INTO preallocation VALUES (zeroblob(?))", (length,))
        except apsw.Error as error:
            _log.debug("write-ahead log was not preallocated", extra=_fields(self.path, _reason(error)))
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.pragma("cache_size", _CACHE)
            _written_pages(connection)

    def _salvage(self, damage: apsw.Error) -> None:
        self._disconnect()
        salvage.replace(self.path, _reason(damage))

    def _read(self, read: Callable[[apsw.Connection], T]) -> T:
        """Call `read`; if it finds damage, salvage the file and call it again."""
        try:
            return read(self._connected())
        except apsw.CorruptError as error:
            self._salvage(error)
            return read(self._connected())

    def _check_files(self) -> apsw.Connection:
        """Return the connection if its files are in place; SQLite would keep writing to files that were removed."""
        connection = self._connected()
        if not self._files.is_database_in_place():
            raise StoreError("the file was removed or replaced; put it back, or restart the server")
        return connection if self._files.is_log_in_place() else self._renew_log(connection)

    def _renew_log(self, connection: apsw.Connection) -> apsw.Connection:
        """Begin a new log, after the old one or its index was removed or replaced.

        SQLite still has the old one open, so that nothing is lost: all of it is copied into the file first.
        """
        self.checkpoints.close()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._files.move_replaced_log_away()
        self._disconnect()
        connection = self._connected()
        if not self._files.has_log():  # a reader in this process still has the old one open
            self._disconnect()
            raise StoreError("the write-ahead log was removed, and a new one cannot be made yet")
        _log.warning("write-ahead log was removed or replaced; a new one was made", extra=_file_field(self.path))
        return connection

    def _roll_back(self, error: Exception) -> None:
        """Roll back a failed transaction.

        The connection is kept if possible: it knows where the log ended before, and overwrites what the failed commit
        left there. A new connection would read the log, and might find that commit complete in it.
        """
        self.record_table.reset()
        self._damaged = self._damaged or isinstance(error, (apsw.CorruptError, apsw.NotADBError))
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            self._disconnect()

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self._lock.acquire_database()
            self._connection = _connect(self.path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            try:
                self._configure(self._connection)
            except (apsw.Error, StoreError):
                self._disconnect()
                raise
        return self._connection

    def _configure(self, connection: apsw.Connection) -> None:
        self.record_table.reset()
        schema.recognise(connection, str(self.path))  # before a file of another program is changed
        for pragma, value in (
            ("journal_mode", "WAL"), ("synchronous", "FULL"),
            ("journal_size_limit", 64 * 1024 * 1024), ("cache_size", _CACHE), ("temp_store", "MEMORY"),
        ):  # fmt: skip
            connection.pragma(pragma, value)
        _open_log(connection)
        self._files.remember()
        connection.wal_autocheckpoint(0)  # SQLite's own checkpoints ignore errors

    def _connect_to_log(self) -> apsw.Connection:
        """Another connection, for copying the log."""
        connection = _connect(self.path, apsw.SQLITE_OPEN_READWRITE)
        try:
            _open_log(connection)
        except apsw.Error:
            connection.close(True)
            raise
        return connection

    def _disconnect(self) -> None:
        with contextlib.suppress(apsw.Error):
            self.checkpoints.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(apsw.Error):
                connection.close(True)

    def _meta(self, name: str, default: int) -> int:
        value = self._connected().execute("SELECT value FROM meta WHERE name = ?", (name,)).get
        return default if value is None else int(value)

    def _set_meta(self, name: str, value: int) -> None:
        try:
            self._connected().execute(_SET_META, (name, value))
        except apsw.Error as error:
            raise StoreError(f"cannot write {self.path}: {_reason(error)}") from None


def _read_after(read: sqlite_jobs.ReadRows, last: int, connection: apsw.Connection) -> list[tuple[Any, ...]]:
    return read(connection, last)


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags)
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    return connection


def _written_pages(connection: apsw.Connection) -> int:
    """Return how many pages were written to the log since the last call."""
    return connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, True)[0]


def _open_log(connection: apsw.Connection) -> None:
    """Have SQLite open the log and its index, as it does when it reads."""
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _free_space(path: Path) -> int:
    """Return the bytes that this user may still write to the disk."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _fields(path: Path, why: str) -> dict[str, dict[str, str]]:
    return {"fields": {"file": str(path), "why": why}}


def _file_field(path: Path) -> dict[str, dict[str, str]]:
    return {"fields": {"file": str(path)}}


def disk_size(path: Path) -> int:
    """Return the size of a store's file and its write-ahead log in bytes."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
