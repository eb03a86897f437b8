"""Who has a store open, seen without touching its lock: to try the lock could keep a server from starting."""

import contextlib
import os
from pathlib import Path
from typing import Final, NamedTuple

_LOCKS: Final = Path("/proc/locks")


class Holder(NamedTuple):
    """A process that holds a store's lock."""

    pid: int  # as it wrote it down; in another container it may go by another number there
    command: str  # what it was started as; empty if that cannot be seen
    sure: bool  # the system says so; else only the note that it left says so


def find(path: Path) -> Holder | None:
    """The process that has this store open, if there is one."""
    note = path.with_name(path.name + ".lock")
    try:
        status = note.stat()
        written = note.read_text(errors="replace").strip()
    except OSError:
        return None
    pid = int(written) if written.isdecimal() else 0
    try:
        locks = _LOCKS.read_text()
    except OSError:
        return Holder(pid, _command(pid), False) if pid and _lives(pid) else None
    held = _held(locks, status, pid)
    return None if held is None else Holder(pid or held, _command(pid or held), True)


def _held(locks: str, status: os.stat_result, pid: int) -> int | None:
    """Who has the file, by the system's list of locks; 0 is a process that cannot be seen from here.

    A line is `1: FLOCK  ADVISORY  WRITE 4711 fe:00:2146703 0 EOF`. Some file systems show another device there
    than to everybody else; the process id that the file itself names is as good.
    """
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    for line in locks.splitlines():
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK":
            continue
        where, _, inode = words[5].rpartition(":")
        if inode == str(status.st_ino) and (where == device or words[4] == str(pid)):
            return int(words[4])
    return None


def _lives(pid: int) -> bool:
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
