"""What operators do with a store's file besides serving it: dump it, load a dump into it, make it smaller.

The command line is on one side of this, the store on the other.
"""

import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from geartrain.errors import StoreError
from geartrain.model import Job
from geartrain.server.config.settings import Settings
from geartrain.store import dump, loader, rows, url
from geartrain.store.contract import Record
from geartrain.store.snapshot import Snapshot
from geartrain.store.sqlite import SqliteStore, disk_size

# SQLite makes a copy beside the file, then writes that back through its log.
COPIES_TO_COMPACT: Final = 2
_REPORT_EVERY: Final = 1000  # jobs or records
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")

_T = TypeVar("_T", Job, Record)

Progress = Callable[[int], None]
Notice = Callable[[str], None]


class Dumped(NamedTuple):
    """How much a dump has."""

    jobs: int
    records: int


class Compacted(NamedTuple):
    """What the file and its log took on the disk."""

    before: int
    after: int


def store(settings: Settings) -> SqliteStore:
    """The store that `geartrain serve` would use, if it is one with a file; it is not opened yet."""
    found = url.create_store(settings.store, settings.result_limit)
    if not isinstance(found, SqliteStore):
        raise StoreError("a memory store is gone with its server; name one that has a file with --store")
    return found


def existing(settings: Settings) -> SqliteStore:
    """The same, where a server has made it before."""
    found = store(settings)
    try:
        there = found.path.is_file()
    except OSError as error:
        raise StoreError(f"cannot read {found.path}: {error.strerror}") from None
    if not there:
        raise StoreError(
            f"there is no store at {found.path}; name it with --store. A server says at its start where it keeps "
            "its jobs; one that systemd started does so in /var/lib/geartrain"
        )
    return found


def write_dump(
    path: Path, with_records: bool, write: Callable[[bytes], object], notice: Notice, progress: Progress
) -> Dumped:
    """Write a dump of the file as it is now, whether or not a server has it open."""
    counts = [0, 0]
    with Snapshot(path) as snapshot:
        snapshot.require_known_layout()
        write(dump.header(time.time(), snapshot.next_id))
        jobs = _lines(snapshot.jobs(notice), dump.job_line, notice)
        records = _lines(snapshot.records() if with_records else (), dump.record_line, notice)
        for kind, lines in enumerate((jobs, records)):
            for line in lines:
                write(line)
                counts[kind] += 1
                if not counts[kind] % _REPORT_EVERY:
                    progress(sum(counts))
    write(dump.end(*counts))
    return Dumped(*counts)


def load_dump(
    store: SqliteStore, lines: Iterable[bytes], name: str, replace: bool, notice: Notice, progress: Progress
) -> loader.Summary:
    """Load a dump, all or nothing, into a store that nobody has open; `name` is what the dump is called."""
    try:
        return loader.load(store, lines, replace, notice, progress)
    except dump.DumpError as error:
        raise StoreError(f"{name}: {error}; nothing was loaded") from None


def compact(store: SqliteStore) -> Compacted:
    """Make the file of a store that nobody has open as small as what is in it."""
    # Where SQLite puts its copy; it looks before its first file is opened, and only then.
    os.environ.setdefault("SQLITE_TMPDIR", str(store.path.parent.absolute()))
    before = disk_size(store.path)
    next_id = store.open()
    try:
        _require_space(store.path)
        store.compact()
    finally:
        store.close(next_id)
    return Compacted(before, disk_size(store.path))


def shown_size(size: float) -> str:
    """About how much, for people.

    >>> shown_size(1536), shown_size(12 * 1024**2)
    ('1.5 KiB', '12.0 MiB')
    """
    if size < 1024:
        return f"{size:.0f} bytes"
    power = min(int(math.log(size, 1024)), len(_UNITS))
    return f"{size / 1024**power:.1f} {_UNITS[power - 1]}"


def _lines(found: Iterable[_T], encode: Callable[[_T], bytes], notice: Notice) -> Iterator[bytes]:
    """Each as a line; what cannot be written as one is told and left out."""
    for entry in found:
        try:
            yield encode(entry)
        except rows.BrokenRowError as broken:
            notice(f"row {entry.id} is left out: {broken}")


def _require_space(path: Path) -> None:
    with Snapshot(path) as snapshot:
        in_use, _ = snapshot.sizes
    needed = COPIES_TO_COMPACT * in_use
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreError(
            f"{path.parent} has {shown_size(free)} free, and compacting needs {shown_size(needed)}: twice what is "
            "in use; make room, or dump to another disk and load into a new file"
        )
