"""The configuration that Periodic clients can read and set while the server runs.

Values are kept in the store, so they survive a restart. Older names of a key are names of the same value.
"""

from collections.abc import Callable, Mapping
from typing import Final

KIND: Final = "periodic"  # of saved value
_PREFIX: Final = f"{KIND}."
_MOST: Final = 2**32 - 1

# In seconds, except the last two. The defaults are those of the original server.
DEFAULTS: Final[dict[bytes, int]] = {
    b"poll-interval": 300,  # at most this long until a change of the wall clock is noticed
    b"revert-interval": 300,  # at most this long between two checks for silent connections
    b"timeout": 600,  # of a job without a timeout of its own
    b"keepalive": 300,  # a connection that is silent for longer is closed
    b"lock-timeout": 300,  # a job that waits for a lock is tried again after this time
    b"max-batch-size": 250,  # due jobs that are moved to their queues at once
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


class PeriodicConfig:
    """The current values."""

    def __init__(self, saved: Mapping[str, bytes], save: Callable[[str, bytes], None]) -> None:
        self._save = save
        self._values = dict(DEFAULTS)
        self.use(saved)

    def use(self, saved: Mapping[str, bytes]) -> None:
        """Use saved values, perhaps of another server."""
        for key in DEFAULTS:
            value = saved.get(_PREFIX + key.decode(), b"")
            if value.isdigit():
                self._values[key] = min(int(value), _MOST)

    def load(self, name: str, value: bytes, replace: bool) -> tuple[bool, bool]:
        """Load a value of a dump; whether it was loaded, and whether one had been set."""
        key = name.removeprefix(_PREFIX).encode()
        was_set = self.get(key) != DEFAULTS.get(key, 0)
        if was_set and not replace:
            return False, True
        is_valid = value.isdigit() and int(value) <= _MOST
        return is_valid and self.set(key, int(value)), was_set

    def get(self, key: bytes) -> int:
        """The value of a key; 0 for an unknown key, as in the original server."""
        return self._values.get(_OLD_NAMES.get(key, key), 0)

    def set(self, key: bytes, value: int) -> bool:
        """Set and save the value of a key; false for an unknown key, which is ignored."""
        key = _OLD_NAMES.get(key, key)
        if key not in self._values:
            return False
        self._values[key] = value
        self._save(_PREFIX + key.decode(), b"%d" % value)
        return True
