"""Jobs that a client prepares: it has taken an id, and perhaps written the hash, and will push it to a queue.

They are in memory, and bounded in number and size. One that is never queued is deleted after a while.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys, written_fields

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_KEPT_FOR: Final = 3600.0  # seconds
_MOST: Final = 100_000
_MOST_PER_CONNECTION: Final = 10_000
_MOST_BYTES: Final = 256 * 1024 * 1024


class PreparedJob:
    """An id, and the fields of its hash so far."""

    __slots__ = ("connection", "expires_at", "fields", "function", "size")

    def __init__(self, function: bytes, connection: "GearmonkeyConnection", expires_at: float) -> None:
        self.function = function
        self.connection = connection  # that took the id
        self.fields: dict[bytes, bytes] = {}
        self.size = 0  # bytes of the fields
        self.expires_at = expires_at


class PreparedJobs:
    """By id, the oldest first."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[int, PreparedJob] = OrderedDict()
        self._bytes = 0
        self._check_at = 0.0  # none is too old before

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, number: int, function: bytes, connection: "GearmonkeyConnection", now: float) -> None:
        """Add an id that a client has taken."""
        if connection.prepared >= _MOST_PER_CONNECTION:
            raise keys.refusal(f"{_MOST_PER_CONNECTION} ids were taken here and not queued; use those first")
        self._jobs[number] = PreparedJob(function, connection, now + _KEPT_FOR)
        connection.prepared += 1
        self._delete_old(now)

    def get(self, key: keys.Key) -> PreparedJob | None:
        """The prepared job of a key."""
        prepared = self._jobs.get(key.id)
        return prepared if prepared is not None and prepared.function == key.function else None

    def write(self, prepared: PreparedJob, fields: dict[bytes, bytes], now: float) -> None:
        """Write fields of its hash."""
        if prepared.fields:
            prepared.fields.update(fields)
        else:
            prepared.fields = fields
        self._measure(prepared)
        self._delete_old(now)

    def strip(self, prepared: PreparedJob, names: list[bytes]) -> int:
        """Delete fields; returns how many there were."""
        gone = sum(prepared.fields.pop(name, None) is not None for name in names)
        self._measure(prepared)
        return gone

    def _measure(self, prepared: PreparedJob) -> None:
        """Count the bytes of fields that were changed."""
        size = written_fields.size_of(prepared.fields)
        self._bytes += size - prepared.size
        prepared.size = size

    def pop(self, number: int) -> PreparedJob | None:
        """Remove a job that is submitted now, or given up."""
        prepared = self._jobs.pop(number, None)
        if prepared is not None:
            prepared.connection.prepared -= 1
            self._bytes -= prepared.size
        return prepared

    def _delete_old(self, now: float) -> None:
        if now < self._check_at and len(self._jobs) <= _MOST and self._bytes <= _MOST_BYTES:
            return
        while self._jobs:
            number, oldest = next(iter(self._jobs.items()))
            crowded = len(self._jobs) > _MOST or self._bytes > _MOST_BYTES
            if oldest.expires_at > now and not (crowded and len(self._jobs) > 1):
                self._check_at = oldest.expires_at
                return
            self.pop(number)
