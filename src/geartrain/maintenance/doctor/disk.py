"""Checks of the place where a store is: its folder, the disk under it, and who has it open."""

import math
import os
import pwd
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from geartrain.maintenance import store_file
from geartrain.maintenance.doctor.finding import Finding, Findings
from geartrain.store import holder, sqlite

_WRITES: Final = 50
_WRITES_SECONDS: Final = 5.0  # a disk that is slower than ten writes a second is not asked for all of them
_WRITE_SIZE: Final = 4096  # a page of the log, the least that a commit writes
_SLOW_SECONDS: Final = 0.010  # a write to a single spinning disk
_LITTLE_SPACE: Final = 64 * 1024**2  # the log alone may take as much

_REMOTE: Final = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "fuse.sshfs", "fuse.s3fs")
_IN_MEMORY: Final = ("tmpfs", "ramfs")


class Speed(NamedTuple):
    """How long small writes took to reach the disk, in seconds."""

    median: float
    p99: float


def folder(path: Path, found: Findings) -> Finding:
    """Whether the store's files can be made and written."""
    parent = _nearest(path.parent)
    user = _user(os.geteuid())
    if not parent.is_dir():
        return found.problem(f"{parent} is no folder", "name another store with --store")
    if _is_read_only(parent) or not os.access(parent, os.W_OK | os.X_OK):
        return found.problem(
            f"{parent} cannot be written by {user}, so no job can be kept there",
            f"let the server's user write there, or name another store with --store (this ran as {user})",
        )
    if parent != path.parent:
        return found.ok(f"{path.parent} is not there yet; the server will make it")
    if path.exists() and path.stat().st_uid != os.geteuid():
        owner = _user(path.stat().st_uid)
        return found.warning(
            f"{path} belongs to {owner}, and this runs as {user}: whether {owner} can write it is not known",
            f"run this as {owner}, as the server is",
        )
    return found.ok(f"{user} can write in {parent}")


def file_system(path: Path, found: Findings) -> Finding:
    """Whether it is one that keeps what it is given."""
    parent = _nearest(path.parent)
    kind = _file_system(parent)
    if kind in _REMOTE:
        return found.problem(
            f"{parent} is on a network ({kind}), where neither the lock nor the log of SQLite can be relied on",
            "keep the store on a disk of this machine",
        )
    if kind in _IN_MEMORY:
        return found.warning(
            f"{parent} is in memory ({kind}): jobs outlive the server there, but no restart of the machine",
            "keep the store on a disk",
        )
    return found.ok(f"{parent} is on a disk of this machine ({kind})" if kind else "it is not known")


def space(path: Path, found: Findings) -> Finding:
    """Whether there is room to grow."""
    parent = _nearest(path.parent)
    free = shutil.disk_usage(parent).free
    size = sqlite.disk_size(path)
    text = f"{store_file.shown_size(free)} free; the store takes {store_file.shown_size(size)}"
    if free < _LITTLE_SPACE:
        return found.problem(
            f"{text}. When it is full, new background jobs are refused until there is room",
            "make room on this disk now",
        )
    if free < size * store_file.COPIES_TO_COMPACT:
        return found.warning(
            f"{text}: not enough for `geartrain compact`", "make room, or move the store to a larger disk"
        )
    return found.ok(text)


def speed(path: Path, found: Findings) -> Finding:
    """How fast small writes reach the disk: every acknowledged background job waits for one."""
    if not path.parent.is_dir():
        return found.ok("not measured: the folder is not there yet")
    try:
        measured = measure(path.parent)
    except OSError as error:
        return found.warning(f"not measured: {error.strerror}", "see what is said about the folder")
    median, p99 = (f"{seconds * 1000:.2f} ms" for seconds in measured)
    text = (
        f"a small write reaches the disk in {median} (median), {p99} (p99): one client that waits for each "
        f"answer submits about {_rounded(1 / measured.median)} background jobs a second, and many clients more"
    )
    if measured.median > _SLOW_SECONDS:
        return found.warning(f"slow: {text}", "use a faster disk for the store, or submit from several clients")
    return found.ok(text)


def measure(folder: Path) -> Speed:
    """Append small pieces to a file that nobody sees, each until it is on the disk."""
    taken: list[float] = []
    deadline = time.perf_counter() + _WRITES_SECONDS
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        piece = os.urandom(_WRITE_SIZE)
        while len(taken) < _WRITES and (began := time.perf_counter()) < deadline:
            file.write(piece)
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    taken.sort()
    return Speed(max(statistics.median(taken), 1e-6), taken[math.ceil(len(taken) * 0.99) - 1])


def lock(path: Path, found: Findings) -> Finding:
    """Who has the store open."""
    who = holder.find(path)
    if who is None:
        return found.ok("no server has the store open")
    called = f" ({who.command})" if who.command else ""
    perhaps = "" if who.sure else " perhaps: it says so, and a process of that number runs"
    return found.ok(f"process {who.pid}{called} has the store open{perhaps}")


def _nearest(folder: Path) -> Path:
    """The folder, or of those above it the first that is there."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _is_read_only(folder: Path) -> bool:
    """root may write everywhere, except where nobody can."""
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _file_system(folder: Path) -> str:
    """Its kind, by the system's list of mounts: the last line whose device is that of the folder."""
    status = folder.stat()
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    kind = ""
    try:
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            if before.split()[2] == device and after:
                kind = after.split()[0]
    except OSError:
        return ""
    return kind


def _rounded(rate: float) -> str:
    """Two digits say all that there is to know.

    >>> _rounded(1234.5), _rounded(87.6)
    ('1,200', '88')
    """
    digits = max(int(math.log10(rate)) - 1, 0)
    return f"{round(rate, -digits):,.0f}"
