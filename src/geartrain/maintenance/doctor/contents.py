"""Checks of a store's file: its layout, its integrity, and what in it needs an operator."""

from pathlib import Path
from typing import Final

from geartrain.errors import StoreError
from geartrain.maintenance import store_file
from geartrain.maintenance.doctor.finding import Check, Finding
from geartrain.store import schema, snapshot, sqlite
from geartrain.store.lock import find_holder
from geartrain.store.snapshot import Snapshot

# The server's write-ahead log grows while a snapshot is open, so reading a large file has a time limit.
READ_SECONDS: Final = 10.0
_LARGE_LOG: Final = 256 * 1024**2  # four times the size to which the server keeps it when no reader is in the way
_SHOWN: Final = 3

_RESTART: Final = (
    "restart the server: it sets the damaged file aside and recovers the jobs that can be read. "
    'See docs/operations.md, section "The file is damaged"'
)


def layout(path: Path, check: Check) -> Finding:
    """Whether the file is a store, and of a known version."""
    newest = len(schema.MIGRATIONS)
    with Snapshot(path) as file:
        version = file.layout
    if not version:
        return check.problem(f"{path} is not a Geartrain store", "name another file with --store")
    if version > newest:
        return check.problem(
            f"layout {version} is from a newer version of Geartrain; this version supports layouts up to {newest}",
            "install the newer version",
        )
    if version < newest:
        return check.ok(f"layout {version}; the next start of the server migrates it to {newest}")
    return check.ok(f"layout {version}")


def last_stop(path: Path, check: Check) -> Finding:
    """Whether the last server closed the file."""
    if find_holder(path) is not None:
        return check.ok("a server has the file open")
    with Snapshot(path) as file:
        clean = file.clean
    if clean:
        return check.ok("the last server closed the file")
    return check.warning(
        "the last server did not close the file: it crashed, it was killed, or the machine stopped",
        "no repair is needed: the next start checks the file. Look for the cause in the server's log",
    )


def integrity(path: Path, check: Check, thorough: bool) -> Finding:
    """Whether SQLite finds damage; `thorough` reads all of the file and compares its indexes."""
    try:
        with Snapshot(path) as file:
            damage = file.damage(0 if thorough else READ_SECONDS, thorough)
    except snapshot.UnfinishedError:
        size = store_file.shown_size(sqlite.disk_size(path))
        return check.warning(
            f"only part of the {size} was checked within {READ_SECONDS:.0f} seconds; no damage in that part",
            "`geartrain doctor --thorough` checks everything; run it while the server is stopped",
        )
    if damage:
        return check.problem(f"the file is damaged: {'; '.join(damage[:_SHOWN])}", _RESTART)
    return check.ok("no damage" + (", and all indexes are correct" if thorough else ""))


def jobs(path: Path, check: Check) -> Finding:
    """How many jobs are unfinished, and how many are dead."""
    try:
        with Snapshot(path) as file:
            unfinished, dead = file.waiting_and_dead(READ_SECONDS)
    except snapshot.UnfinishedError:
        return check.ok(f"not counted: that takes longer than {READ_SECONDS:.0f} seconds")
    if dead:
        return check.warning(
            f"{unfinished:,} unfinished, {dead:,} dead",
            "`geartrain jobs --state dead` lists the dead jobs with their reasons; "
            "`geartrain retry` queues them again, `geartrain delete` removes them",
        )
    return check.ok(f"{unfinished:,} unfinished, 0 dead")


def broken_rows(path: Path, check: Check) -> Finding:
    """Whether the server has set aside rows that it could not read as jobs."""
    with Snapshot(path) as file:
        count = file.broken
    if not count:
        return check.ok("none")
    return check.warning(
        f"{count:,} rows could not be read as jobs and were set aside",
        f"`sqlite3 {path} 'SELECT datetime(found_at, \"unixepoch\"), complaint, id FROM broken'` shows the reasons; "
        "submit these jobs again if they matter, then delete the rows",
    )


def damaged_files(path: Path, check: Check) -> Finding:
    """Whether damaged files that were set aside are still in the folder."""
    files = [file for file in path.parent.glob(f"{path.name}.damaged-*") if not file.name.endswith(("-wal", "-shm"))]
    if not files:
        return check.ok("none")
    names = ", ".join(sorted(file.name for file in files)[:_SHOWN])
    return check.warning(
        f"{len(files)} in {path.parent}: {names}. The jobs that could be read were recovered",
        "find the cause (disk, memory, a copy of a file in use), then remove them",
    )


def log(path: Path, check: Check) -> Finding:
    """Whether the write-ahead log is too large."""
    file = path.with_name(path.name + "-wal")
    size = file.stat().st_size if file.exists() else 0
    if size > _LARGE_LOG:
        return check.warning(
            f"{file.name} has {store_file.shown_size(size)}: a process that reads the store keeps the server from "
            "emptying it",
            "look for a `geartrain dump` or another reader that hangs, and end it",
        )
    return check.ok(f"{store_file.shown_size(size)} in the write-ahead log")


# Of a file with a known layout and without damage.
CHECKS: Final = (
    ("last stop", last_stop),
    ("jobs", jobs),
    ("broken rows", broken_rows),
    ("log", log),
)


def unreadable(error: StoreError, check: Check) -> Finding:
    """The finding of a check that could not read the file."""
    damaged = isinstance(error, snapshot.DamagedError)
    return check.problem(str(error), _RESTART if damaged else "check that this user may read the file")
