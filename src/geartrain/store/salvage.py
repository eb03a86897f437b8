"""Salvage of a damaged file: the jobs that can be read are copied to a new file, and the damaged one is kept.

So are failed jobs that were kept whole. Records stay behind, so these get new ones, with what the job itself says.

The new file is written beside the damaged one and replaces it by a rename when it is complete. A server that is killed
meanwhile, or finds the disk full, has lost nothing and starts again.
"""

import contextlib
import itertools
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw

from geartrain.store import schema
from geartrain.store.contract import COLUMNS
from geartrain.store.transaction import transaction

_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
_TEXTS: Final = frozenset(index for index, name in enumerate(COLUMNS) if name in schema.TEXTS)
_ADD_JOB: Final = schema.insert("jobs", COLUMNS, otherwise="OR IGNORE")
_ADD_FAILED_JOB: Final = schema.insert("failed_jobs", COLUMNS, otherwise="OR IGNORE")
# A job that is in both tables was being retried. When it failed, and which worker had it, is only in its lost record.
_ADD_RECORDS: Final = """
DELETE FROM failed_jobs WHERE id IN (SELECT id FROM jobs);
INSERT INTO records (
    id, handle, function, unique_key, priority, state, submitted_at, started_at, finished_at, attempts, door,
    worker_door, worker, code, reason, result, trials, keeps_result
) SELECT
    id, handle, function, unique_key, priority, state, submitted_at, 0, ?, attempts, door,
    '', x'', 1, reason, x'', trials, keeps_result
FROM failed_jobs ORDER BY id
"""
_QUARANTINE: Final = f"INSERT INTO broken VALUES (?, ?, {schema.marks(COLUMNS)})"
# After an unreadable id this many are tried one by one; a page has fewer jobs. Larger gaps are skipped with steps that
# double, so that a gap of any size takes few attempts.
_NEARBY: Final = 1000
_PAGE_SIZE: Final = 4096
_LAST_ID: Final = 2**62
_UNREADABLE: Final = (apsw.Error, UnicodeDecodeError)

_log = logging.getLogger("geartrain.store")


def check(connection: apsw.Connection) -> None:
    """Check the whole file, after it was not closed cleanly; raise CorruptError if it is damaged."""
    answer = connection.execute("PRAGMA quick_check(1)").get
    if answer != "ok":
        raise apsw.CorruptError(str(answer))


def check_length(path: Path) -> None:
    """Raise CorruptError if the file is empty and its log is not: SQLite would delete the log."""
    log = _beside(path, "-wal")
    if log.exists() and log.stat().st_size and not path.stat().st_size:
        os.truncate(path, _PAGE_SIZE)  # SQLite reads the log of a file that has at least one page
        raise apsw.CorruptError("the file is empty and its log is not")


def replace(path: Path, reason: str) -> None:
    """Copy the jobs that can be read to a new file, and put it in the place of the damaged one."""
    new = _new_path(path)
    _discard(new)
    jobs, broken = _fill(new, path)
    damaged = _damaged_path(path)
    path.rename(damaged)  # from here on `resume` can do the rest
    _put_in_place(path, damaged)
    fields = {"file": str(path), "why": reason, "kept": str(damaged), "jobs": jobs, "broken": broken}
    _log.error("store is damaged; readable jobs were copied to a new file", extra={"fields": fields})


def resume(path: Path) -> None:
    """Finish a `replace` that was interrupted between its renames, or discard one that was interrupted before."""
    new = _new_path(path)
    if path.exists():
        _discard(new)
    elif new.exists():
        damaged_files = path.parent.glob(f"{path.name}.damaged-*[0-9]")
        _put_in_place(path, max(damaged_files, default=_damaged_path(path)))


def _new_path(path: Path) -> Path:
    return _beside(path, ".renewed")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _discard(new: Path) -> None:
    for suffix in ("", *_SIDE_FILES):
        _beside(new, suffix).unlink(missing_ok=True)


def _damaged_path(path: Path) -> Path:
    """Return an unused name for the damaged file; the names sort by time."""
    now = time.strftime("%Y%m%dT%H%M%S")
    names = (_beside(path, f".damaged-{now}-{number:02}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def _put_in_place(path: Path, damaged: Path) -> None:
    for suffix in _SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            _beside(path, suffix).rename(_beside(damaged, suffix))
    _new_path(path).rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fill(new: Path, damaged: Path) -> tuple[int, int]:
    """Create the new file; return the number of jobs in it, and of rows that could be read but are not valid jobs."""
    os.close(os.open(new, os.O_CREAT | os.O_CLOEXEC, 0o600))
    jobs = broken = 0
    with contextlib.closing(apsw.Connection(str(new))) as connection:
        schema.migrate(connection, str(new))
        with transaction(connection):
            for row in _readable_jobs(damaged, "jobs"):
                try:
                    connection.execute(_ADD_JOB, row)
                    jobs += 1
                except (apsw.ConstraintError, apsw.MismatchError) as error:
                    connection.execute(_QUARANTINE, (time.time(), str(error), *row))
                    broken += 1
            for row in _readable_jobs(damaged, "failed_jobs"):
                with contextlib.suppress(apsw.ConstraintError, apsw.MismatchError):
                    connection.execute(_ADD_FAILED_JOB, row)
            connection.execute(_ADD_RECORDS, (time.time(),))
            for pair in _saved_values(damaged):
                with contextlib.suppress(apsw.ConstraintError):
                    connection.execute("INSERT INTO kept VALUES (?, ?)", pair)
            connection.execute("INSERT INTO meta VALUES ('next_id', ?)", (_first_unused(connection, damaged),))
    return jobs, broken


def _saved_values(damaged: Path) -> list[tuple[Any, ...]]:
    """The saved values; they are few, and are read all or none."""
    with contextlib.suppress(*_UNREADABLE), _reading(damaged) as old:
        return old.execute("SELECT name, value FROM kept").fetchall()
    return []


def _first_unused(connection: apsw.Connection, damaged: Path) -> int:
    """Return an id above all that the lost part may have used: microseconds pass faster than ids are reserved."""
    highest = connection.execute("SELECT max(id) FROM jobs").get or 0
    reserved = 0
    with contextlib.suppress(*_UNREADABLE), _reading(damaged) as old:
        reserved = _first_unreserved(old)
    return max(int(highest) + 1, reserved, int(time.time() * 1_000_000))


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection]:
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        # Without this, SQLite reads nothing of a file that is shorter than its header says.
        connection.pragma("writable_schema", True)
        yield connection


def _readable_jobs(path: Path, table: str) -> Iterator[tuple[Any, ...]]:
    """Every row of a table of jobs that can be read, by id. Damage may look like rows, with ids out of order."""
    try:
        with _reading(path) as connection:
            end = _first_unreserved(connection) or _LAST_ID
            if not connection.table_exists("main", table):
                return  # a file of an older layout
            statement = _select_from_id(connection, table)
            next_id = 1
            while next_id < end:
                try:
                    for row in connection.execute(statement, (next_id,)):
                        if next_id <= row[0] < end:
                            next_id = row[0] + 1
                            yield tuple(_text(value) if index in _TEXTS else value for index, value in enumerate(row))
                    return
                except _UNREADABLE:
                    next_id = _after_damage(connection, statement, next_id)
    except apsw.Error:
        return  # not even the first page is readable


def _select_from_id(connection: apsw.Connection, table: str) -> str:
    """Return the statement that reads every row from an id on, including those whose text is not UTF-8.

    It uses ">=", because ">" would visit the row before, which may be the last one of an unreadable page.
    """
    columns = ", ".join(schema.expressions(connection, table, COLUMNS, raw_text=True))
    return f"SELECT {columns} FROM {table} WHERE id >= ? ORDER BY id"


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _after_damage(connection: apsw.Connection, statement: str, id: int) -> int:
    """Return the first id after an unreadable one from which reading succeeds."""
    for near in range(id + 1, id + _NEARBY):
        if _can_read_from(connection, statement, near):
            return near
    unreadable = id + _NEARBY
    step = _NEARBY
    while not _can_read_from(connection, statement, unreadable + step):
        unreadable += step
        step *= 2
        if unreadable >= _LAST_ID:
            return _LAST_ID
    readable = unreadable + step
    while readable - unreadable > 1:
        middle = (readable + unreadable) // 2
        if _can_read_from(connection, statement, middle):
            readable = middle
        else:
            unreadable = middle
    return readable


def _can_read_from(connection: apsw.Connection, statement: str, id: int) -> bool:
    try:
        connection.execute(statement + " LIMIT 1", (id,)).fetchall()
    except _UNREADABLE:
        return False
    return True


def _first_unreserved(connection: apsw.Connection) -> int:
    """Return the first id that the damaged file had not reserved; 0 if that is lost."""
    try:
        next_id = connection.execute("SELECT value FROM meta WHERE name = 'next_id'").get
    except _UNREADABLE:
        return 0
    return next_id if isinstance(next_id, int) and 0 < next_id < _LAST_ID else 0
