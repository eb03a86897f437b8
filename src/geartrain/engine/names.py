"""Which names of functions and workers and which unique keys peers may choose.

The engine checks the name of a function when the function is new, so that jobs of a function that exists pay nothing
for it. Jobs in a store from before a rule existed keep their names.

Lists of functions and workers are lines of text in several protocols, so a line feed in a name would forge lines.
Unique keys are bytes: protocols and lists that cannot carry one escape it (`escape.py`).
"""

from typing import Final

from geartrain import escape
from geartrain.errors import InvalidNameError

# The function of jobs that are workflows; no worker runs them.
WORKFLOW: Final = b"geartrain.workflow"

LONGEST_FUNCTION: Final = 512  # bytes
LONGEST_UNIQUE: Final = 255  # bytes; Gearman's own limit of 64 is its door's
LONGEST_PARTITION: Final = 255  # bytes


def check_function(name: bytes) -> None:
    """Raise InvalidNameError unless a new function may have this name."""
    if len(name) > LONGEST_FUNCTION:
        raise InvalidNameError(f"the name of a function has at most {LONGEST_FUNCTION} bytes; this one has {len(name)}")
    # Perl's libraries put a tab between a prefix and the name; lists escape it.
    if escape.has_control_characters(name.replace(b"\t", b"")):
        raise _with_control_characters("function", name)


def check_worker(name: bytes) -> None:
    """Raise InvalidNameError unless a worker may have this name."""
    if escape.has_control_characters(name):
        raise _with_control_characters("worker", name)


def _with_control_characters(kind: str, name: bytes) -> InvalidNameError:
    shown = escape.escape(name).decode("utf-8", "backslashreplace")
    return InvalidNameError(f"the name of a {kind} has no control characters; this one is {shown}")


def check_partition(name: bytes) -> None:
    """Raise InvalidNameError unless a job may have this partition."""
    if len(name) > LONGEST_PARTITION:
        raise InvalidNameError(
            f"the name of a partition has at most {LONGEST_PARTITION} bytes; this one has {len(name)}"
        )


def unique_too_long(unique: bytes) -> InvalidNameError:
    """The error for a unique key over the limit."""
    return InvalidNameError(f"a unique key has at most {LONGEST_UNIQUE} bytes; this one has {len(unique)}")
