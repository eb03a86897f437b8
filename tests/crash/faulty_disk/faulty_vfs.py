"""A disk that fails when it is told to: an SQLite VFS that counts writes and syncs, and refuses some of them.

    disk = FaultyDisk(Span("sync", 3, 2))  # the third sync fails, and the one after it

It must be registered before a connection is opened, and stays SQLite's default until `remove`.
"""

import os
import time
from typing import Any, NamedTuple

import apsw

NAME = "faulty"
SYSTEM = "unix"  # SQLite's own VFS, which does the work

# What SQLite calls these failures; each is what it would say for the system's EIO.
_CODES = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
}


class Span(NamedTuple):
    """Fails some operations in a row: those of one kind, or of all kinds together."""

    kind: str  # write, sync, truncate, or any
    first: int  # counted from 1
    times: int

    def __call__(self, kind: str, number: int) -> bool:
        return self.first <= number < self.first + self.times


class Switch(NamedTuple):
    """Fails everything for as long as a file of this name exists."""

    path: str
    kind: str = "any"

    def __call__(self, kind: str, number: int) -> bool:
        return os.path.exists(self.path)


class Stall(NamedTuple):
    """Fails nothing, but no sync ends for as long as a file of this name exists."""

    path: str
    kind: str = "sync"

    def __call__(self, kind: str, number: int) -> bool:
        while os.path.exists(self.path):
            time.sleep(0.001)  # what a slow disk does; nobody could wake it
        return False


class FaultyDisk(apsw.VFS):
    """SQLite's default VFS from the moment it is made."""

    def __init__(self, fault: Any = None) -> None:
        self.fault = fault
        self.counts = dict.fromkeys((*_CODES, "any"), 0)
        self.failures = 0
        super().__init__(NAME, SYSTEM, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> "FaultyFile":  # noqa: N802
        return FaultyFile(self, name, flags)

    def begin(self, fault: Any) -> None:
        """Count from zero, and fail as told; None: never."""
        self.counts = dict.fromkeys(self.counts, 0)
        self.failures = 0
        self.fault = fault

    def before(self, kind: str) -> None:
        """Something is about to be done to a file."""
        self.counts[kind] += 1
        self.counts["any"] += 1
        fault = self.fault
        if fault is None or fault.kind not in (kind, "any") or not fault(kind, self.counts[fault.kind]):
            return
        self.failures += 1
        error = apsw.IOError(f"this {kind} was made to fail")
        error.extendedresult = _CODES[kind]  # type: ignore[attr-defined]
        raise error

    def remove(self) -> None:
        """The next connection uses the system's own again."""
        self.unregister()


class FaultyFile(apsw.VFSFile):
    """One file of it."""

    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(SYSTEM, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.before("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.before("sync")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.before("truncate")
        super().xTruncate(size)


def parse(text: str) -> Any:
    """`sync 3 2` is a Span, `switch /some/file` a Switch, `stall /some/file` a Stall."""
    kind, *rest = text.split()
    if kind in ("switch", "stall"):
        return {"switch": Switch, "stall": Stall}[kind](rest[0])
    return Span(kind, int(rest[0]), int(rest[1]))
