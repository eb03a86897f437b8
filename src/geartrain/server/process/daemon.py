"""Going into the background, as gearmand's `--daemon`.

The command that was typed ends when the server is ready, with exit code 0, or when it has failed to start,
with exit code 1 after the server's own words on stderr: a script that goes on after it finds the doors open.
"""

import os
import sys
from collections.abc import Callable

_READY = b"r"


def keep_standard_streams() -> None:
    """Open those that the caller has closed, so that no socket gets their numbers: libuv aborts over that."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one


def detach() -> Callable[[bool], None]:
    """Return in the background process only; call the result once it is ready to serve.

    Its argument says whether stderr stays open, for a log that is written there.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        os.waitpid(child, 0)
        os._exit(_outcome(reader))
    os.close(reader)
    os.setsid()
    # The session's leader goes as well: what is left can never get a controlling terminal.
    if os.fork():
        os._exit(0)
    return lambda keep_stderr: _ready(writer, keep_stderr)


def _outcome(reader: int) -> int:
    """A server that ends without a word closes its end of the pipe all the same."""
    with open(reader, "rb") as pipe:
        return 0 if pipe.read(1) == _READY else 1


def _ready(writer: int, keep_stderr: bool) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1) if keep_stderr else (0, 1, 2):
        os.dup2(nothing, descriptor)
    if nothing > 2:
        os.close(nothing)
    os.write(writer, _READY)
    os.close(writer)
