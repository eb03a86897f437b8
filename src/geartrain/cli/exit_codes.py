"""The exit codes of `geartrain`. Scripts rely on them."""

from typing import Final

from geartrain.errors import (
    AdminError,
    GeartrainError,
    JobFailedError,
    JobTimeoutError,
    NoWorkersError,
    ResultGoneError,
    ServerGoneError,
)

FAILED: Final = 1  # an error of the command, or the server refused
USAGE: Final = 2  # typer's own number
JOB_FAILED: Final = 3
NOT_FOUND: Final = 4
NO_SERVER: Final = 5
TIMED_OUT: Final = 6
INTERRUPTED: Final = 130  # as shells report a command that Ctrl-C ended

EPILOG: Final = """
**Exit codes.** 0 success; 1 error, printed on stderr; 2 wrong usage; 3 the job failed; 4 no such job, function or
schedule; 5 no server could be reached; 6 timeout; 130 Ctrl-C.
"""

_CODES: Final[tuple[tuple[type[GeartrainError], int], ...]] = (
    (JobFailedError, JOB_FAILED),
    (JobTimeoutError, TIMED_OUT),
    (ServerGoneError, NO_SERVER),
    (NoWorkersError, NOT_FOUND),
    (ResultGoneError, NOT_FOUND),
)


def code_for(error: GeartrainError) -> int:
    """The exit code for an error."""
    if isinstance(error, AdminError):
        return NOT_FOUND if error.kind == "not-found" else FAILED
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)
