"""One server per file: a lock that the system releases when its holder dies, however it dies."""

import contextlib
import fcntl
import os
from pathlib import Path

from geartrain.errors import StoreError


class FileLock:
    """Holds `<file>.lock`, in which the holder's process id is written for people."""

    def __init__(self, file: Path) -> None:
        self._path = file.with_name(file.name + ".lock")
        self._descriptor = -1
        self.known = self._path.exists()  # a server has used this file before

    def take(self) -> None:
        """Lock the file for this process; a StoreError names who has it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                raise StoreError(f"cannot lock {self._path}: {error.strerror}") from None
            raise StoreError(
                f"{self._path.with_suffix('')} is in use by process {holder}; stop it, or use another file"
            ) from None
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # a full disk: the lock counts, not what is written in it
            os.truncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())

    def release(self) -> None:
        """Give it back. The file stays: if it were removed, two servers could each lock a different one."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.truncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1
