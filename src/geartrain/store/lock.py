"""One server per file: the locks, and who holds them.

There are two. `<file>.lock` contains the process id of its holder, and is locked before anything is done to the store.
The database itself is locked as well, because a link to it has another lock file and a lock file can be removed. Both
are locks of `flock`, which are independent of the ones that SQLite takes, so that other processes can read the store.

The operating system releases the locks when their process ends, however it ends.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from geartrain.errors import StoreError
from geartrain.store import file_identity

_LOCKS: Final = Path("/proc/locks")
_UNKNOWN: Final = "unknown"


class FileLock:
    """The locks of one store for this process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._path = _lock_path(file)
        self._descriptor = -1  # of the lock file
        self._database = -1  # a descriptor of the database
        self.existed = self._path.exists()  # a server has used this file before

    def acquire(self) -> None:
        """Lock the lock file for this process; raise StoreError with the process id if another one has it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from None
        if not _lock(descriptor, self._path):
            pid = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise self._in_use(pid)
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # the disk may be full; the lock is valid without the process id
            os.truncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())

    def acquire_database(self) -> None:
        """Lock the database, which is created if it does not exist. Call it before SQLite opens the file.

        Its descriptor stays open until `release`: closing any descriptor of a file ends all locks that this process,
        and so SQLite, has on it. A file that has replaced the locked one is locked instead.
        """
        if (
            file_identity.identity(self._file)
            == file_identity.identity_of_open(self._database)
            != file_identity.MISSING
        ):
            return
        descriptor = file_identity.open_regular(self._file)
        if not _lock(descriptor, self._file):
            os.close(descriptor)
            raise self._in_use(_database_holder(self._file))
        if self._database >= 0:
            os.close(self._database)
        self._database = descriptor

    def release(self) -> None:
        """Unlock both. No file is deleted: otherwise two servers could lock two different files of this name."""
        if self._database >= 0:
            os.close(self._database)
            self._database = -1
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.truncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1

    def _in_use(self, pid: str) -> StoreError:
        return StoreError(f"{self._file} is in use by process {pid or _UNKNOWN}; stop it, or use another file")


class LockHolder(NamedTuple):
    """A process that holds the lock of a store."""

    pid: int  # as it wrote it; in another container the same process may have another id
    command: str  # its command line; empty: not visible
    certain: bool  # whether /proc/locks confirms it; otherwise only the content of the lock file says so


def find_holder(file: Path) -> LockHolder | None:
    """Return the process that has a store open, without trying the lock: that could keep a server from starting."""
    path = _lock_path(file)
    content = ""
    with contextlib.suppress(OSError):
        content = path.read_text(errors="replace").strip()
    pid = int(content) if content.isdecimal() else 0
    try:
        locks = _LOCKS.read_text()
    except OSError:
        return LockHolder(pid, _command(pid), False) if pid and _is_alive(pid) else None
    holder = _holder_pid(locks, _statuses(path, file), pid)
    return None if holder is None else LockHolder(pid or holder, _command(pid or holder), True)


def _database_holder(file: Path) -> str:
    """Return the id of the process that has locked the database itself; it may have another lock file than ours."""
    with contextlib.suppress(OSError):
        return str(_holder_pid(_LOCKS.read_text(), _statuses(file), pid=0) or "")
    return ""


def _lock_path(file: Path) -> Path:
    """The lock file is beside the file itself, also if its name is a symbolic link."""
    file = Path(os.path.realpath(file))
    return file.with_name(file.name + ".lock")


def _lock(descriptor: int, path: Path) -> bool:
    """Lock a file; return False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        os.close(descriptor)
        raise StoreError(f"cannot lock {path}: {error.strerror}") from None
    return True


def _statuses(*paths: Path) -> list[os.stat_result]:
    statuses = []
    for path in paths:
        with contextlib.suppress(OSError):
            statuses.append(path.stat())
    return statuses


def _holder_pid(locks: str, statuses: Iterable[os.stat_result], pid: int) -> int | None:
    """Find the holder of one of these files in /proc/locks; 0 is a process that is not visible from this container.

    A line is `1: FLOCK  ADVISORY  WRITE 4711 fe:00:2146703 0 EOF`. Some file systems show another device there than in
    `stat`; then the process id from the lock file identifies the line.
    """
    by_inode = {
        str(status.st_ino): f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}" for status in statuses
    }
    for line in locks.splitlines():
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK":
            continue
        device, _, inode = words[5].rpartition(":")
        if inode in by_inode and (device == by_inode[inode] or words[4] == str(pid)):
            return int(words[4])
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode("utf-8", "replace").strip()
    return ""
