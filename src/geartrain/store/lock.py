"""One server per file: the lock, and who holds it.

The operating system releases the lock when its process ends, however it ends.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final, NamedTuple

from geartrain.errors import StoreError

_LOCKS: Final = Path("/proc/locks")


class FileLock:
    """The lock `<file>.lock`, which contains the process id of its holder."""

    def __init__(self, file: Path) -> None:
        self._path = _lock_path(file)
        self._descriptor = -1
        self.existed = self._path.exists()  # a server has used this file before

    def acquire(self) -> None:
        """Lock the file for this process; raise StoreError with the process id if another one has it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                raise StoreError(f"cannot lock {self._path}: {error.strerror}") from None
            raise StoreError(
                f"{self._path.with_suffix('')} is in use by process {pid}; stop it, or use another file"
            ) from None
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # the disk may be full; the lock is valid without the process id
            os.truncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())

    def release(self) -> None:
        """Unlock the file. It is not deleted: otherwise two servers could lock two different files of this name."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.truncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


class LockHolder(NamedTuple):
    """A process that holds the lock of a store."""

    pid: int  # as it wrote it; in another container the same process may have another id
    command: str  # its command line; empty: not visible
    certain: bool  # whether /proc/locks confirms it; otherwise only the content of the lock file says so


def find_holder(file: Path) -> LockHolder | None:
    """Return the process that has a store open, without trying the lock: that could keep a server from starting."""
    path = _lock_path(file)
    try:
        status = path.stat()
        content = path.read_text(errors="replace").strip()
    except OSError:
        return None
    pid = int(content) if content.isdecimal() else 0
    try:
        locks = _LOCKS.read_text()
    except OSError:
        return LockHolder(pid, _command(pid), False) if pid and _is_alive(pid) else None
    holder = _holder_pid(locks, status, pid)
    return None if holder is None else LockHolder(pid or holder, _command(pid or holder), True)


def _lock_path(file: Path) -> Path:
    return file.with_name(file.name + ".lock")


def _holder_pid(locks: str, status: os.stat_result, pid: int) -> int | None:
    """Find the holder of the lock file in /proc/locks; 0 is a process that is not visible from this container.

    A line is `1: FLOCK  ADVISORY  WRITE 4711 fe:00:2146703 0 EOF`. Some file systems show another device there than in
    `stat`; then the process id from the lock file identifies the line.
    """
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    for line in locks.splitlines():
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK":
            continue
        line_device, _, inode = words[5].rpartition(":")
        if inode == str(status.st_ino) and (line_device == device or words[4] == str(pid)):
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
