"""Privileges and limits of the process: open files, core files, user."""

import contextlib
import os
import pwd
import resource
import stat
from collections.abc import Iterator

from geartrain.errors import StartError


def raise_file_limit() -> None:
    """Raise the limit of open files to the hard limit, where the system permits it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def set_file_limit(limit: int) -> None:
    """Set the limit of open files; StartError if the system refuses."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        hard = max(limit, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError) as error:
        raise StartError(f"cannot set the limit of open files to {limit}: {error}") from None


def allow_core() -> None:
    """Let a crash of the interpreter leave a core file."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def find_user(name: str) -> pwd.struct_passwd:
    """Look up the user to switch to; called first, so that a mistake is noticed before anything is opened."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise StartError(f"unknown user {name!r}") from None


@contextlib.contextmanager
def acting_as(user: pwd.struct_passwd | None) -> Iterator[None]:
    """Create files as this user while the block runs, if this process is root and will switch to that user."""
    if user is None or os.geteuid() != 0:
        yield
        return
    group = os.getegid()
    os.setegid(user.pw_gid)
    os.seteuid(user.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)


def give_file(path: str, user: pwd.struct_passwd) -> None:
    """Make the file, which may not exist yet, one that this user can open again; only if this process is root.

    The user creates it where it can. Otherwise root does, and gives it away: only a regular file of root's own with no
    other name, because a user that can write to the directory could put a link to another file there. Errors are left
    to whoever opens the file.
    """
    if os.geteuid() != 0:
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    with contextlib.suppress(OSError), acting_as(user):
        os.close(os.open(path, flags, 0o644))
        return
    with contextlib.suppress(OSError):
        file = os.open(path, flags | os.O_NOFOLLOW, 0o644)
        try:
            status = os.fstat(file)
            if stat.S_ISREG(status.st_mode) and status.st_uid == 0 and status.st_nlink == 1:
                os.fchown(file, user.pw_uid, user.pw_gid)
        finally:
            os.close(file)


def become(user: pwd.struct_passwd) -> None:
    """Switch to this user permanently."""
    if os.getuid() == user.pw_uid == os.geteuid():
        return
    try:
        os.initgroups(user.pw_name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    except PermissionError:
        raise StartError(f"only root can switch to user {user.pw_name!r}") from None
