"""The files of an open store: whether they are still the ones that SQLite has open.

SQLite keeps writing to files that were removed or replaced. Whatever it commits to them is lost when the process ends,
so the store compares the identity of each file (device and inode) before it writes.
"""

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from geartrain.errors import StoreError


class FileIdentity(NamedTuple):
    """Which file has a name; two names with the same identity are links to one file."""

    device: int
    inode: int


MISSING = FileIdentity(-1, -1)


class StoreFiles:
    """The database, its write-ahead log and the log's index, as they were when SQLite opened them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path.with_name(path.name + "-wal")
        self.index = path.with_name(path.name + "-shm")
        self._names = (str(path), str(self.log), str(self.index))  # a path would be converted for each commit
        self._database = self._log = self._index = MISSING

    def remember(self) -> None:
        """Note the files that SQLite has just opened."""
        self._database, self._log, self._index = identity(self.path), identity(self.log), identity(self.index)

    def is_database_in_place(self) -> bool:
        return _is_in_place(self._names[0], self._database)

    def is_log_in_place(self) -> bool:
        return _is_in_place(self._names[1], self._log) and _is_in_place(self._names[2], self._index)

    def has_log(self) -> bool:
        """Whether the log and its index exist, under the names that other processes open."""
        return MISSING not in (identity(self.log), identity(self.index))

    def move_replaced_log_away(self) -> None:
        """Rename a log that took the place of ours, which SQLite would read as ours; remove its index."""
        if identity(self.log) not in (self._log, MISSING) and self.log.stat().st_size:
            self.log.rename(self.log.with_name(f"{self.log.name}.replaced-{time.strftime('%Y%m%dT%H%M%S')}"))
        for file, ours in ((self.log, self._log), (self.index, self._index)):
            if identity(file) != ours:
                file.unlink(missing_ok=True)


def _is_in_place(name: str, file: FileIdentity) -> bool:
    """Whether a name is still that of this file. As a comparison with `identity`, in half the time."""
    try:
        status = os.stat(name)
    except OSError:
        return file == MISSING
    return status.st_ino == file.inode and status.st_dev == file.device


def identity(path: Path) -> FileIdentity:
    """Return the identity of the file that has this name now."""
    try:
        return _identity(os.stat(path))
    except OSError:
        return MISSING


def require_regular(path: Path) -> None:
    """Raise StoreError if the name belongs to something that cannot be a store: a folder, a FIFO, a device."""
    with contextlib.suppress(OSError):
        _require_regular(path, os.stat(path).st_mode)


def open_regular(path: Path) -> int:
    """Open a store's file, and create it if it does not exist; raise StoreError if it is not a regular file.

    It does not wait for a FIFO's other end. Payloads may be secret: a new file is for its owner alone, and SQLite gives
    its other files the permissions of this one.
    """
    file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        _require_regular(path, os.fstat(file).st_mode)
    except StoreError:
        os.close(file)
        raise
    return file


def identity_of_open(file: int) -> FileIdentity:
    """Return the identity of an open file; a negative descriptor is none."""
    return _identity(os.fstat(file)) if file >= 0 else MISSING


def _identity(status: os.stat_result) -> FileIdentity:
    return FileIdentity(status.st_dev, status.st_ino)


def _require_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise StoreError(f"{path} is {kind}; name a file that only Geartrain uses")
