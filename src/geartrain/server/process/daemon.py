"""Running in the background, as gearmand's `--daemon`.

The command ends with exit code 0 when the server is ready, or with exit code 1 when it cannot start, after the error
on stderr. So a script can connect as soon as the command has ended.
"""

import os
import sys
from collections.abc import Callable

_READY = b"r"


def keep_standard_streams() -> None:
    """Open those that the caller has closed: libuv aborts if a socket gets one of their numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one


def detach() -> Callable[[bool], None]:
    """Fork, and return in the background process only; call the result once the server is ready.

    Its argument says whether stderr stays open, for a log that is written there.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        os.waitpid(child, 0)
        os._exit(_exit_code(reader))
    os.close(reader)
    os.setsid()
    # A second fork: a process that leads no session can never get a controlling terminal.
    if os.fork():
        os._exit(0)
    return lambda keep_stderr: _ready(writer, keep_stderr)


def _exit_code(reader: int) -> int:
    """Wait for the server; the end of its process closes the pipe in any case."""
    with open(reader, "rb") as pipe:
        return 0 if pipe.read(1) == _READY else 1


def _ready(writer: int, keep_stderr: bool) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1) if keep_stderr else (0, 1, 2):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)
    os.write(writer, _READY)
    os.close(writer)
