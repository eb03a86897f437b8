"""The pid file, which holds the process id while the server runs."""

import contextlib
import logging
import os
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
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:
        raise StartError(f"cannot write the pid file {path}: {error.strerror}") from None


def _remove(path: str) -> None:
    """Leave the file alone if another process has written it meanwhile."""
    try:
        with open(path, encoding="ascii") as file:
            is_ours = file.read().strip() == str(os.getpid())
        if is_ours:
            os.unlink(path)
    except (OSError, ValueError) as error:
        _log.warning("cannot remove pid file", extra={"fields": {"file": path, "why": str(error)}})
