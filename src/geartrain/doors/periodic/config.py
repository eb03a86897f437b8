"""The values that Periodic clients can read and set while the server runs, and what each of them governs.

They are kept in the store, so a value that was set is still in force after a restart. Names that the protocol has
changed over the years are names of the same value.
"""

from collections.abc import Callable, Mapping
from typing import Final

_PREFIX: Final = "periodic."
_MOST: Final = 2**32 - 1

# In seconds, but for the last two. The defaults are the original server's.
DEFAULTS: Final[dict[bytes, int]] = {
    b"poll-interval": 300,  # the schedule is looked at no less often than this, should the clock have been moved
    b"revert-interval": 300,  # how often waits that have taken too long are looked for
    b"timeout": 600,  # a job that says nothing of its own may run so long
    b"keepalive": 300,  # a connection that is silent for so long is closed
    b"lock-timeout": 300,  # a job that waits for a lock is tried again after so long in any case
    b"max-batch-size": 250,  # so many jobs whose time has come are moved at once
    b"expiration": 300,
    b"assign-wait": 2,
    b"max-pool-size": 10,
    b"run-job-aggressive": 0,
}
_OLD_NAMES: Final = {
    b"poll-delay": b"poll-interval",
    b"revert-delay": b"revert-interval",
    b"max-patch": b"max-batch-size",
}


class Config:
    """The values in force."""

    def __init__(self, saved: Mapping[str, bytes], save: Callable[[str, bytes], None]) -> None:
        self._save = save
        self._values = dict(DEFAULTS)
        for key in DEFAULTS:
            value = saved.get(_PREFIX + key.decode(), b"")
            if value.isdigit():
                self._values[key] = min(int(value), _MOST)

    def get(self, key: bytes) -> int:
        """A value; 0 for a key that does not exist, as the original server answers."""
        return self._values.get(_OLD_NAMES.get(key, key), 0)

    def set(self, key: bytes, value: int) -> bool:
        """Change a value and save it; false for a key that does not exist, which changes nothing."""
        key = _OLD_NAMES.get(key, key)
        if key not in self._values:
            return False
        self._values[key] = value
        self._save(_PREFIX + key.decode(), b"%d" % value)
        return True
