"""Checks of a store's file: whether it can be read, is sound, and what in it needs somebody."""

from pathlib import Path
from typing import Final

from geartrain.errors import StoreError
from geartrain.maintenance import store_file
from geartrain.maintenance.doctor.finding import Finding, Findings
from geartrain.store import holder, schema, snapshot, sqlite
from geartrain.store.snapshot import Snapshot

# While a snapshot is open a server's log grows, so looking at all of a large file has an end.
LOOK_SECONDS: Final = 10.0
_LARGE_LOG: Final = 256 * 1024**2  # four times what the server lets it have when nobody is in its way
_SHOWN: Final = 3

_START_IT: Final = (
    "start the server (again): it keeps the damaged file aside and carries over what can be read of it. "
    "docs/operations.md says more"
)


def layout(path: Path, found: Findings) -> Finding:
    """Whether it is a file of ours, and of which version."""
    newest = len(schema.MIGRATIONS)
    with Snapshot(path) as file:
        version = file.layout
    if not version:
        return found.problem(f"{path} is not a store of Geartrain", "name another file with --store")
    if version > newest:
        return found.problem(
            f"layout {version}: written by a newer Geartrain, and this one knows up to {newest}",
            "run the newer version",
        )
    if version < newest:
        return found.ok(f"layout {version}; the next start brings it to {newest}")
    return found.ok(f"layout {version}")


def order(path: Path, found: Findings) -> Finding:
    """Whether the last server stopped as it should."""
    if holder.find(path) is not None:
        return found.ok("a server has it open")
    with Snapshot(path) as file:
        clean = file.clean
    if clean:
        return found.ok("the last server closed the file in good order")
    return found.warning(
        "the last server did not close the file: it crashed, was killed, or the machine stopped",
        "nothing: the next start checks the file first. Look into the log for why it happened",
    )


def soundness(path: Path, found: Findings, thorough: bool) -> Finding:
    """Whether SQLite finds the file whole."""
    try:
        with Snapshot(path) as file:
            damage = file.damage(0 if thorough else LOOK_SECONDS, thorough)
    except snapshot.UnfinishedError:
        size = store_file.shown_size(sqlite.disk_size(path))
        return found.warning(
            f"not all of its {size} were looked at: it took longer than {LOOK_SECONDS:.0f} seconds. "
            "What was seen is sound",
            "`geartrain doctor --thorough` takes its time; best while the server does not run",
        )
    if damage:
        return found.problem(f"it is damaged: {'; '.join(damage[:_SHOWN])}", _START_IT)
    return found.ok("all of it can be read" + (", and its indexes are right" if thorough else ""))


def jobs(path: Path, found: Findings) -> Finding:
    """How many wait, and whether some were given up."""
    try:
        with Snapshot(path) as file:
            waiting, dead = file.waiting_and_dead(LOOK_SECONDS)
    except snapshot.UnfinishedError:
        return found.ok(f"more than can be counted in {LOOK_SECONDS:.0f} seconds")
    if dead:
        return found.warning(
            f"{waiting:,} not over, and {dead:,} dead: given up after too many attempts",
            '`geartrain dump | grep \'"state":"dead"\'` shows them and why',
        )
    return found.ok(f"{waiting:,} not over, none dead")


def broken_rows(path: Path, found: Findings) -> Finding:
    """Whether rows that are no jobs were set aside."""
    with Snapshot(path) as file:
        count = file.broken
    if not count:
        return found.ok("none were set aside")
    return found.warning(
        f"{count:,} could not be read as jobs and were set aside",
        f"`sqlite3 {path} 'SELECT datetime(found_at, \"unixepoch\"), complaint, id FROM broken'` shows why; "
        "submit those jobs again if they matter, then delete the rows",
    )


def damaged_files(path: Path, found: Findings) -> Finding:
    """Whether damaged files of earlier days are kept beside it."""
    kept = [file for file in path.parent.glob(f"{path.name}.damaged-*") if not file.name.endswith(("-wal", "-shm"))]
    if not kept:
        return found.ok("none are kept")
    names = ", ".join(sorted(file.name for file in kept)[:_SHOWN])
    return found.warning(
        f"{len(kept)} kept in {path.parent}: {names}. Their jobs were carried over as far as they could be read",
        "find out what damaged them (disk, memory, a copy of a file in use), then remove them",
    )


def log(path: Path, found: Findings) -> Finding:
    """Whether the write-ahead log has outgrown its bounds."""
    file = path.with_name(path.name + "-wal")
    size = file.stat().st_size if file.exists() else 0
    if size > _LARGE_LOG:
        return found.warning(
            f"{store_file.shown_size(size)} in {file.name}: something reads the store for so long that the log cannot "
            "be emptied",
            "look for a dump or another reader that hangs",
        )
    return found.ok(f"{store_file.shown_size(size)} in the write-ahead log")


# Of what is in a file that is of a known layout and sound.
CHECKS: Final = (
    ("last stop", order),
    ("jobs", jobs),
    ("broken rows", broken_rows),
    ("log", log),
)


def unreadable(error: StoreError, found: Findings) -> Finding:
    """A check that could not even look."""
    damaged = isinstance(error, snapshot.DamagedError)
    advice = _START_IT if damaged else "see whether this user may read the file"
    return found.problem(str(error), advice)
