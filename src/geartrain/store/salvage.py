"""A damaged file: what can still be read of it is carried over into a new one, and the old one is kept."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import apsw

from geartrain.store.contract import COLUMNS

_SIDE_FILES: Final = ("", "-wal", "-shm")
_COLUMNS: Final = ", ".join(COLUMNS)
_INSERT: Final = f"INSERT OR IGNORE INTO jobs ({_COLUMNS}) VALUES ({', '.join('?' * len(COLUMNS))})"
# Skipping over unreadable ids doubles the step each time, so that a gap of any size costs few attempts.
_FIRST_STEP: Final = 1

_log = logging.getLogger("geartrain.store")


def check(connection: apsw.Connection) -> None:
    """Look at the whole file after a stop that was not clean; a CorruptError if it is damaged."""
    found = connection.execute("PRAGMA quick_check(1)").get
    if found != "ok":
        raise apsw.CorruptError(str(found))


def renew(path: Path, why: str, create: Callable[[], apsw.Connection]) -> None:
    """Set a damaged file aside, and fill a new one with the jobs that can be read."""
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}")
    for suffix in _SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    connection = create()
    jobs = 0
    highest = 0
    with connection:
        for row in _readable(aside):
            try:
                connection.execute(_INSERT, row)
            except (apsw.ConstraintError, apsw.MismatchError):
                continue
            jobs += 1
            highest = max(highest, row[0])
        # Ids that the lost part may have held must not come back.
        first = max(highest + 1, _promised(aside), int(time.time() * 1000))
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('next_id', ?)", (first,))
    fields = {"file": str(path), "why": why, "kept": str(aside), "jobs": jobs}
    _log.error("the store is damaged; what could be read was carried over", extra={"fields": fields})


def _readable(path: Path) -> Iterator[tuple[Any, ...]]:
    """Every job row that can be read, from the front to the damage and from the back to it, then between."""
    try:
        connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return
    with contextlib.closing(connection):
        last = -1
        step = _FIRST_STEP
        end = _last_id(connection)
        while last < end:
            try:
                for row in connection.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id > ? ORDER BY id", (last,)):
                    last = row[0]
                    step = _FIRST_STEP
                    yield row
                return
            except (apsw.Error, UnicodeDecodeError):
                last += step
                step *= 2


def _last_id(connection: apsw.Connection) -> int:
    try:
        return int(connection.execute("SELECT max(id) FROM jobs").get or 0)
    except apsw.Error:
        return 2**62


def _promised(path: Path) -> int:
    """The first id that the damaged file had not promised, if it still says so."""
    try:
        with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
            return int(connection.execute("SELECT value FROM meta WHERE name = 'next_id'").get or 0)
    except apsw.Error:
        return 0
