"""What a process may do: how many files it may open, whether it leaves a core, and as whom it runs."""

import contextlib
import os
import pwd
import resource
from collections.abc import Iterator

from geartrain.errors import StartError


def raise_file_limit() -> None:
    """Allow this process as many open files as it may have; where it may not ask for them, it has enough."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def set_file_limit(wanted: int) -> None:
    """Allow this process exactly so many open files, or refuse to start."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        hard = max(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        raise StartError(f"{wanted} open files are not allowed here: {error}") from None


def allow_core() -> None:
    """A crash of the interpreter may leave a core file."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def find_user(name: str) -> pwd.struct_passwd:
    """Look the user up before anything is opened, so that a mistake costs nothing."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise StartError(f"there is no user {name!r} to switch to") from None


@contextlib.contextmanager
def acting_as(user: pwd.struct_passwd | None) -> Iterator[None]:
    """Make files as this user for a while, if this is root and will become that user."""
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


def become(user: pwd.struct_passwd) -> None:
    """Run as this user from now on, for good."""
    if os.getuid() == user.pw_uid == os.geteuid():
        return
    try:
        os.initgroups(user.pw_name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    except PermissionError:
        raise StartError(f"only root can switch to user {user.pw_name!r}") from None
