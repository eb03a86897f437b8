"""Which names of functions and which unique keys peers may choose.

The engine checks the name of a function when the function is new, so that jobs of a function that exists pay nothing
for it. Jobs in a store from before a rule existed keep their names.
"""

from typing import Final

from geartrain.errors import InvalidNameError

LONGEST_FUNCTION: Final = 512  # bytes
LONGEST_UNIQUE: Final = 255  # bytes; Gearman's own limit of 64 is its door's


def check_function(name: bytes) -> None:
    """Raise InvalidNameError unless a new function may have this name."""
    if len(name) > LONGEST_FUNCTION:
        raise InvalidNameError(f"the name of a function has at most {LONGEST_FUNCTION} bytes; this one has {len(name)}")


def unique_too_long(unique: bytes) -> InvalidNameError:
    """The error for a unique key over the limit."""
    return InvalidNameError(f"a unique key has at most {LONGEST_UNIQUE} bytes; this one has {len(unique)}")
