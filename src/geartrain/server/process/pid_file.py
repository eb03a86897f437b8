"""The file that holds the process id while the server serves."""

import contextlib
import logging
import os
from collections.abc import Iterator

from geartrain.errors import StartError

_log = logging.getLogger("geartrain.server")


@contextlib.contextmanager
def written(path: str) -> Iterator[None]:
    """Written at the start of the block and removed at its end; an empty path means none."""
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
        raise StartError(f"the pid file {path} cannot be written: {error.strerror}") from None


def _remove(path: str) -> None:
    """Unless another process has written it meanwhile: then it is not ours any more."""
    try:
        with open(path, encoding="ascii") as file:
            ours = file.read().strip() == str(os.getpid())
        if ours:
            os.unlink(path)
    except (OSError, ValueError) as error:
        _log.warning("the pid file was not removed", extra={"fields": {"file": path, "why": str(error)}})
