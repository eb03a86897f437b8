"""Jobs that a client is about to submit: it has taken an id, and perhaps written the hash.

They are in memory and bounded in number and size. One that is never queued is forgotten after a while.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_KEPT_FOR: Final = 3600.0  # seconds; the document's clients take a moment
_MOST: Final = 100_000
_MOST_PER_CONNECTION: Final = 10_000
_MOST_BYTES: Final = 256 * 1024 * 1024


class Draft:
    """An id of a function, and what was written into its hash so far."""

    __slots__ = ("connection", "expires_at", "fields", "function")

    def __init__(self, function: bytes, connection: "GearmonkeyConnection", expires_at: float) -> None:
        self.function = function
        self.connection = connection  # that took the id
        self.fields: dict[bytes, bytes] = {}
        self.expires_at = expires_at

    @property
    def size(self) -> int:
        return sum(map(len, self.fields.values()))


class Drafts:
    """By id, the oldest first."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[int, Draft] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._drafts)

    def add(self, number: int, function: bytes, connection: "GearmonkeyConnection", now: float) -> None:
        """A client has taken an id."""
        if connection.drafts >= _MOST_PER_CONNECTION:
            raise keys.refusal(f"{_MOST_PER_CONNECTION} ids were taken here and not queued; use those first")
        self._drafts[number] = Draft(function, connection, now + _KEPT_FOR)
        connection.drafts += 1
        self._forget_old(now)

    def get(self, key: keys.Key) -> Draft | None:
        """The draft that a key means."""
        draft = self._drafts.get(key.id)
        return draft if draft is not None and draft.function == key.function else None

    def write(self, draft: Draft, fields: dict[bytes, bytes], now: float) -> None:
        """Write into its hash."""
        before = draft.size
        draft.fields.update(fields)
        self._bytes += draft.size - before
        self._forget_old(now)

    def strip(self, draft: Draft, names: list[bytes]) -> int:
        """Take fields away; returns how many were there."""
        before = draft.size
        gone = sum(draft.fields.pop(name, None) is not None for name in names)
        self._bytes += draft.size - before
        return gone

    def pop(self, number: int) -> Draft | None:
        """It is submitted now, or given up."""
        draft = self._drafts.pop(number, None)
        if draft is not None:
            draft.connection.drafts -= 1
            self._bytes -= draft.size
        return draft

    def _forget_old(self, now: float) -> None:
        while self._drafts:
            number, oldest = next(iter(self._drafts.items()))
            crowded = len(self._drafts) > _MOST or self._bytes > _MOST_BYTES
            if oldest.expires_at > now and not (crowded and len(self._drafts) > 1):
                return
            self.pop(number)
