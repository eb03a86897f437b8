"""A damaged file: what can still be read of it is carried over into a new one, and the old one is kept.

The new file is made beside the old one and takes its place by a rename when it is complete, so that a server
which is killed in the middle of it, or finds the disk full, has lost nothing and does it again.
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

_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
_COLUMNS: Final = ", ".join(COLUMNS)
_DOOR: Final = COLUMNS.index("door")  # and after it the reason
_MARKS: Final = ", ".join("?" * len(COLUMNS))
_INSERT: Final = f"INSERT OR IGNORE INTO jobs ({_COLUMNS}) VALUES ({_MARKS})"
_SET_ASIDE: Final = f"INSERT INTO broken VALUES (?, ?, {_MARKS})"
# So many ids after an unreadable one are tried one by one; a page holds fewer jobs. What is unreadable for longer
# is skipped with steps that double, so that a gap of any size costs few attempts.
_NEARBY: Final = 1000
_PAGE: Final = 4096
_LAST_ID: Final = 2**62
_UNREADABLE: Final = (apsw.Error, UnicodeDecodeError)

_log = logging.getLogger("geartrain.store")


def check(connection: apsw.Connection) -> None:
    """Look at the whole file after a stop that was not clean; a CorruptError if it is damaged."""
    found = connection.execute("PRAGMA quick_check(1)").get
    if found != "ok":
        raise apsw.CorruptError(str(found))


def check_length(path: Path) -> None:
    """An empty file with a log beside it has lost what it held; SQLite would throw away the log as well."""
    log = _beside(path, "-wal")
    if log.exists() and log.stat().st_size and not path.stat().st_size:
        os.truncate(path, _PAGE)  # SQLite reads the log of a file that has at least one page
        raise apsw.CorruptError("the file is empty and its log is not")


def renew(path: Path, why: str) -> None:
    """Fill a new file with the jobs that can be read of a damaged one, and put it in that one's place."""
    fresh = _fresh(path)
    _discard(fresh)
    jobs, broken = _fill(fresh, path)
    aside = _unused(path)
    path.rename(aside)  # from here on `resume` can do the rest
    _put_in_place(path, aside)
    fields = {"file": str(path), "why": why, "kept": str(aside), "jobs": jobs, "broken": broken}
    _log.error("the store is damaged; what could be read was carried over", extra={"fields": fields})


def resume(path: Path) -> None:
    """Finish a renewal that was cut short between its renames, or forget one that had not come so far."""
    fresh = _fresh(path)
    if path.exists():
        _discard(fresh)
    elif fresh.exists():
        asides = path.parent.glob(f"{path.name}.damaged-*[0-9]")
        _put_in_place(path, max(asides, default=_unused(path)))


def _fresh(path: Path) -> Path:
    return _beside(path, ".renewed")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _discard(fresh: Path) -> None:
    for suffix in ("", *_SIDE_FILES):
        _beside(fresh, suffix).unlink(missing_ok=True)


def _unused(path: Path) -> Path:
    """A name for the damaged file that no other has, in the order of time."""
    now = time.strftime("%Y%m%dT%H%M%S")
    names = (_beside(path, f".damaged-{now}-{number:02}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def _put_in_place(path: Path, aside: Path) -> None:
    for suffix in _SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            _beside(path, suffix).rename(_beside(aside, suffix))
    _fresh(path).rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fill(fresh: Path, damaged: Path) -> tuple[int, int]:
    """Make the new file; how many jobs it has, and how many rows were readable and are no jobs."""
    os.close(os.open(fresh, os.O_CREAT | os.O_CLOEXEC, 0o600))
    jobs = broken = 0
    with contextlib.closing(apsw.Connection(str(fresh))) as connection, connection:
        schema.migrate(connection, str(fresh))
        for row in _readable(damaged):
            try:
                connection.execute(_INSERT, row)
                jobs += 1
            except (apsw.ConstraintError, apsw.MismatchError) as error:
                connection.execute(_SET_ASIDE, (time.time(), str(error), *row))
                broken += 1
        for pair in _kept(damaged):
            with contextlib.suppress(apsw.ConstraintError):
                connection.execute("INSERT INTO kept VALUES (?, ?)", pair)
        connection.execute("INSERT INTO meta VALUES ('next_id', ?)", (_first_unused(connection, damaged),))
    return jobs, broken


def _kept(damaged: Path) -> list[tuple[Any, ...]]:
    """The values that were kept under names; they are few, and are read all or none."""
    with contextlib.suppress(*_UNREADABLE), _reading(damaged) as old:
        return old.execute("SELECT name, value FROM kept").fetchall()
    return []


def _first_unused(connection: apsw.Connection, damaged: Path) -> int:
    """Ids that the lost part may have held must not come back. Microseconds pass faster than ids are promised."""
    highest = connection.execute("SELECT max(id) FROM jobs").get or 0
    promised = 0
    with contextlib.suppress(*_UNREADABLE), _reading(damaged) as old:
        promised = _promised(old)
    return max(int(highest) + 1, promised, int(time.time() * 1_000_000))


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection]:
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        # Without this, SQLite reads nothing of a file that is shorter than its header says.
        connection.pragma("writable_schema", True)
        yield connection


def _readable(path: Path) -> Iterator[tuple[Any, ...]]:
    """Every job row that can be read, by id; damage may look like rows, but with ids that do not fit in."""
    try:
        with _reading(path) as connection:
            end = _promised(connection) or _LAST_ID
            statement = _from(connection)
            place = 1
            while place < end:
                try:
                    for row in connection.execute(statement, (place,)):
                        if place <= row[0] < end:
                            place = row[0] + 1
                            yield (*row[:_DOOR], _text(row[_DOOR]), _text(row[_DOOR + 1]), *row[_DOOR + 2 :])
                    return
                except _UNREADABLE:
                    place = _after_damage(connection, statement, place)
    except apsw.Error:
        return  # not even its first page


def _from(connection: apsw.Connection) -> str:
    """Reads every row from an id on. Text that is no text must not keep a job from being read.

    ">=", because ">" would begin at the row before, which may be the last one of an unreadable page.
    """
    columns = ", ".join(schema.expressions(connection, "jobs", COLUMNS, raw_text=True))
    return f"SELECT {columns} FROM jobs WHERE id >= ? ORDER BY id"


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _after_damage(connection: apsw.Connection, statement: str, place: int) -> int:
    """The first id after an unreadable one from which a row can be read again, or there are no more."""
    for near in range(place + 1, place + _NEARBY):
        if _can_read_from(connection, statement, near):
            return near
    unreadable = place + _NEARBY
    step = _NEARBY
    while not _can_read_from(connection, statement, unreadable + step):
        unreadable += step
        step *= 2
        if unreadable >= _LAST_ID:
            return _LAST_ID
    found = unreadable + step
    while found - unreadable > 1:
        middle = (found + unreadable) // 2
        if _can_read_from(connection, statement, middle):
            found = middle
        else:
            unreadable = middle
    return found


def _can_read_from(connection: apsw.Connection, statement: str, place: int) -> bool:
    try:
        connection.execute(statement + " LIMIT 1", (place,)).fetchall()
    except _UNREADABLE:
        return False
    return True


def _promised(connection: apsw.Connection) -> int:
    """The first id that the damaged file had not promised; 0 if it no longer says so."""
    try:
        promised = connection.execute("SELECT value FROM meta WHERE name = 'next_id'").get
    except _UNREADABLE:
        return 0
    return promised if isinstance(promised, int) and 0 < promised < _LAST_ID else 0
