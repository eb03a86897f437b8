"""The pid file, which holds the process id while the server runs."""

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Iterator

from geartrain.errors import StartError

_log = logging.getLogger("geartrain.server")


@contextlib.contextmanager
def written(path: str) -> Iterator[None]:
    """Write the file at the start of the block and remove it at the end; an empty path means no file."""
    if not path:
        yield
        return
    path = os.path.abspath(path)
    _write(path)
    try:
        yield
    finally:
        _remove(path)


def _write(path: str) -> None:
    """Write the process id, also over that of a process that ended without removing the file.

    A link is refused: whoever can create files in the folder could have another file overwritten, by root.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o644)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise StartError(f"cannot write the pid file {path}: it is not a regular file with one name")
            os.ftruncate(file, 0)
            os.write(file, b"%d\n" % os.getpid())
        finally:
            os.close(file)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise StartError(f"cannot write the pid file {path}: {reason}") from None


def _remove(path: str) -> None:
    """Leave the file alone if another process has written it meanwhile."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            is_ours = os.read(file, 32).strip() == b"%d" % os.getpid()
        finally:
            os.close(file)
        if is_ours:
            os.unlink(path)
    except OSError as error:
        _log.warning("cannot remove pid file", extra={"fields": {"file": path, "why": str(error)}})
