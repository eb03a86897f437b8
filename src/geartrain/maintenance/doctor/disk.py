"""Checks of a store's location: folder, file system, free space, disk speed, lock."""

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
from geartrain.maintenance.doctor.finding import Check, Finding
from geartrain.store import sqlite
from geartrain.store.lock import find_holder

_WRITES: Final = 50
_WRITES_SECONDS: Final = 5.0  # a disk with fewer than ten writes a second gets fewer writes
_WRITE_SIZE: Final = 4096  # a page of the write-ahead log, the smallest commit
_SLOW_SECONDS: Final = 0.010  # typical of a single spinning disk
_LITTLE_SPACE: Final = 64 * 1024**2  # the write-ahead log alone may need this much

_REMOTE: Final = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "fuse.sshfs", "fuse.s3fs")
_IN_MEMORY: Final = ("tmpfs", "ramfs")


class WriteTimes(NamedTuple):
    """Seconds until a small write was on the disk."""

    median: float
    p99: float


def folder(path: Path, check: Check) -> Finding:
    """Whether this user can create and write the store's files."""
    parent = _nearest(path.parent)
    user = _user(os.geteuid())
    if not parent.is_dir():
        return check.problem(f"{parent} is not a folder", "name another store with --store")
    if _is_read_only(parent) or not os.access(parent, os.W_OK | os.X_OK):
        return check.problem(
            f"{user} cannot write in {parent}",
            f"let the server's user write there, or name another store with --store (doctor ran as {user})",
        )
    if parent != path.parent:
        return check.ok(f"{path.parent} does not exist yet; the server creates it")
    if path.exists() and path.stat().st_uid != os.geteuid():
        owner = _user(path.stat().st_uid)
        return check.warning(
            f"{path} belongs to {owner}, but doctor runs as {user}: it cannot check the rights of {owner}",
            f"run doctor as {owner}, the server's user",
        )
    return check.ok(f"{user} can write in {parent}")


def file_system(path: Path, check: Check) -> Finding:
    """Whether it is a local, persistent file system."""
    parent = _nearest(path.parent)
    name = _file_system(parent)
    if name in _REMOTE:
        return check.problem(
            f"{parent} is on a network file system ({name}), where SQLite's locks and log are not reliable",
            "put the store on a local disk",
        )
    if name in _IN_MEMORY:
        return check.warning(
            f"{parent} is in memory ({name}): a restart of the machine loses all jobs",
            "put the store on a disk",
        )
    return check.ok(f"{parent} is on a local file system ({name})" if name else "unknown file system")


def space(path: Path, check: Check) -> Finding:
    """Whether the disk has free space."""
    parent = _nearest(path.parent)
    free = shutil.disk_usage(parent).free
    size = sqlite.disk_size(path)
    text = f"{store_file.shown_size(free)} free, the store uses {store_file.shown_size(size)}"
    if free < _LITTLE_SPACE:
        return check.problem(
            f"{text}. When the disk is full, the server refuses new background jobs",
            "free space on this disk now",
        )
    if free < size * store_file.COPIES_TO_COMPACT:
        return check.warning(
            f"{text}: not enough free space for `geartrain compact`", "free space, or move the store to a larger disk"
        )
    return check.ok(text)


def speed(path: Path, check: Check) -> Finding:
    """How long a small write takes: the acknowledgement of a background job waits for one."""
    if not path.parent.is_dir():
        return check.ok("not measured: the folder does not exist yet")
    try:
        measured = measure(path.parent)
    except OSError as error:
        return check.warning(f"not measured: {error.strerror}", "see the check `folder`")
    median, p99 = (f"{seconds * 1000:.2f} ms" for seconds in measured)
    text = (
        f"a small write takes {median} (median), {p99} (p99): a client that waits for each answer can submit "
        f"about {_rounded(1 / measured.median)} background jobs a second, several clients together more"
    )
    if measured.median > _SLOW_SECONDS:
        return check.warning(f"slow: {text}", "put the store on a faster disk, or submit from several clients at once")
    return check.ok(text)


def measure(folder: Path) -> WriteTimes:
    """Append to an unnamed file and sync it, again and again."""
    durations: list[float] = []
    deadline = time.perf_counter() + _WRITES_SECONDS
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        page = os.urandom(_WRITE_SIZE)
        while len(durations) < _WRITES and (started := time.perf_counter()) < deadline:
            file.write(page)
            os.fsync(file.fileno())
            durations.append(time.perf_counter() - started)
    durations.sort()
    return WriteTimes(max(statistics.median(durations), 1e-6), durations[math.ceil(len(durations) * 0.99) - 1])


def lock(path: Path, check: Check) -> Finding:
    """Which process has the store open."""
    process = find_holder(path)
    if process is None:
        return check.ok("no server has the store open")
    command = f" ({process.command})" if process.command else ""
    certainty = "" if process.certain else ", according to the lock file (this system has no list of locks)"
    return check.ok(f"process {process.pid}{command} has the store open{certainty}")


def _nearest(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _is_read_only(folder: Path) -> bool:
    """Whether the file system is mounted read-only; `os.access` does not see that for root."""
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _file_system(folder: Path) -> str:
    """The type of the file system, from the last mount of the folder's device; empty if unknown."""
    status = folder.stat()
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    name = ""
    try:
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            if before.split()[2] == device and after:
                name = after.split()[0]
    except OSError:
        return ""
    return name


def _rounded(rate: float) -> str:
    """Round to two digits; more would be false precision.

    >>> _rounded(1234.5), _rounded(87.6)
    ('1,200', '88')
    """
    digits = max(int(math.log10(rate)) - 1, 0)
    return f"{round(rate, -digits):,.0f}"
