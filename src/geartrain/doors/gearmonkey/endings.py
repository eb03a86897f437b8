"""Hashes of jobs that are over, for as long as they would stay in Redis.

This is a bounded memory in front of the records: what falls out of it is looked up there, where the input is not
kept and a long output is cut.
"""

from collections import OrderedDict
from typing import Final

from geartrain.doors.gearmonkey import keys
from geartrain.engine.job import LiveJob
from geartrain.model import JobState, Record

KEPT_FOR: Final = 90_000.0  # seconds: the document's 25 hours
_MOST: Final = 100_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_OVERHEAD: Final = 500  # bytes of an entry beside its values, about

_SUCCESS: Final = b"success"
_ERROR: Final = b"error"


class Ending:
    """What there is to say of a job that is over."""

    __slots__ = ("expires_at", "fields", "function", "size")

    def __init__(self, function: bytes, fields: dict[bytes, bytes], expires_at: float) -> None:
        self.function = function
        self.fields = fields  # empty: it was deleted
        self.expires_at = expires_at
        self.size = _OVERHEAD + sum(map(len, fields.values()))


class Endings:
    """By id, the first to be forgotten first."""

    def __init__(self) -> None:
        self._endings: OrderedDict[int, Ending] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._endings)

    def remember(self, job: LiveJob, result: bytes, now: float) -> None:
        """A job has just ended."""
        done = job.state is JobState.DONE
        fields = {
            b"status": _SUCCESS if done else _ERROR,
            b"input": job.payload,
            b"output": result if done else (result or job.reason.encode()),
        }
        self._add(job.id, Ending(job.function, fields, now + KEPT_FOR))

    def recall(self, record: Record, now: float) -> None:
        """A job ended some time ago, and is asked for."""
        done = record.state == JobState.DONE
        output = record.result if done else (record.result or record.reason.encode())
        fields = {b"status": _SUCCESS if done else _ERROR, b"output": output}
        expires_at = max(record.finished_at + KEPT_FOR, now + 1.0)
        self._add(record.id, Ending(record.function, fields, expires_at))

    def get(self, key: keys.Key, now: float) -> Ending | None:
        """What a key means, if that is over and not forgotten; one that was deleted has no fields."""
        ending = self._endings.get(key.id)
        if ending is None or ending.function != key.function:
            return None
        if ending.expires_at <= now and ending.fields:
            self._add(key.id, Ending(key.function, {}, now + KEPT_FOR))
            return self._endings[key.id]
        return ending

    def delete(self, key: keys.Key, now: float) -> None:
        """Say no more of it, although its record is still there."""
        self._add(key.id, Ending(key.function, {}, now + KEPT_FOR))

    def _add(self, number: int, ending: Ending) -> None:
        before = self._endings.pop(number, None)
        self._endings[number] = ending
        self._bytes += ending.size - (before.size if before else 0)
        while len(self._endings) > _MOST or (self._bytes > _MOST_BYTES and len(self._endings) > 1):
            self._bytes -= self._endings.popitem(last=False)[1].size
