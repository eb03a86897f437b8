"""Maintenance of a store's file: dump it, load a dump into it, compact it."""

import math
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from geartrain.errors import StoreError
from geartrain.maintenance import dump_writer
from geartrain.maintenance.dump_writer import DumpCounts, Notice, Progress
from geartrain.server import options
from geartrain.server.config.settings import Settings
from geartrain.store import dump, loader, url
from geartrain.store.load_counts import Summary as Summary
from geartrain.store.memory import MemoryStore
from geartrain.store.snapshot import Snapshot
from geartrain.store.sqlite import SqliteStore, disk_size

# SQLite writes a copy beside the file, and then the copy into the file through the write-ahead log.
COPIES_TO_COMPACT: Final = 2
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


class CompactSizes(NamedTuple):
    """Bytes of the file and its write-ahead log, before and after compacting."""

    before: int
    after: int


def store(settings: Settings) -> SqliteStore:
    """The store that `geartrain serve` would use, not opened; StoreError if it has no file."""
    file_store = url.create_store(settings.store, options.result_limits(settings))
    if not isinstance(file_store, SqliteStore):
        kind = (
            "a memory store" if isinstance(file_store, MemoryStore) else f"{url.shown(settings.store)} is a store that"
        )
        raise StoreError(f"{kind} has no file; name a store with a file with --store, or a server with --server")
    return file_store


def existing(settings: Settings) -> SqliteStore:
    """The store that `geartrain serve` would use; StoreError if its file does not exist."""
    file_store = store(settings)
    try:
        exists = file_store.path.is_file()
    except OSError as error:
        raise StoreError(f"cannot read {file_store.path}: {error.strerror}") from None
    if not exists:
        raise StoreError(
            f"{file_store.path} does not exist; name the store with --store. A server logs the URL of its store when "
            "it starts; that of a systemd service is in /var/lib/geartrain"
        )
    return file_store


def write_dump(
    path: Path, with_records: bool, write: Callable[[bytes], object], notice: Notice, progress: Progress
) -> DumpCounts:
    """Write a dump of the file as it is now; a server may have it open."""
    with Snapshot(path) as snapshot:
        return dump_writer.write(snapshot, with_records, write, notice, progress)


def load_dump(
    store: SqliteStore, lines: Iterable[bytes], name: str, replace: bool, notice: Notice, progress: Progress
) -> Summary:
    """Load a dump, all or nothing, into a store that no process has open; errors call the dump `name`."""
    try:
        return loader.load(store, lines, replace, notice, progress)
    except dump.DumpError as error:
        raise StoreError(f"{name}: {error}; nothing was loaded") from None


def compact(store: SqliteStore) -> CompactSizes:
    """Shrink the file of a store that no process has open to the size of its contents."""
    # The directory for SQLite's copy; it reads the variable once, before it opens its first file.
    os.environ.setdefault("SQLITE_TMPDIR", str(store.path.parent.absolute()))
    before = disk_size(store.path)
    next_id = store.open()
    try:
        _require_space(store.path)
        store.compact()
    finally:
        store.close(next_id)
    return CompactSizes(before, disk_size(store.path))


def shown_size(size: float) -> str:
    """A size for people, rounded.

    >>> shown_size(1536), shown_size(12 * 1024**2)
    ('1.5 KiB', '12.0 MiB')
    """
    if size < 1024:
        return f"{size:.0f} bytes"
    power = min(int(math.log(size, 1024)), len(_UNITS))
    return f"{size / 1024**power:.1f} {_UNITS[power - 1]}"


def _require_space(path: Path) -> None:
    with Snapshot(path) as snapshot:
        in_use, _ = snapshot.sizes
    needed = COPIES_TO_COMPACT * in_use
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreError(
            f"not enough space in {path.parent}: {shown_size(free)} free, compacting needs {shown_size(needed)}, twice "
            "the size of the contents; free some space, or dump to another disk and load into a new file"
        )
