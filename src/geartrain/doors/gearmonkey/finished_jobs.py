"""Hashes of finished jobs, for as long as they would stay in Redis.

This is a bounded cache in front of the records: what it no longer has is read there, without the input.
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


class FinishedJob:
    """The hash of a finished job."""

    __slots__ = ("expires_at", "fields", "full_size", "function", "size")

    def __init__(self, function: bytes, fields: dict[bytes, bytes], expires_at: float, full_size: int = 0) -> None:
        self.function = function
        self.fields = fields  # empty: deleted
        self.expires_at = expires_at
        self.full_size = full_size  # of an output of which only the beginning is kept; 0: all of it is
        self.size = _OVERHEAD + sum(map(len, fields.values()))


class FinishedJobs:
    """By id, the oldest first."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[int, FinishedJob] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: LiveJob, result: bytes, now: float) -> None:
        """Add a job that ends now."""
        done = job.state is JobState.DONE
        fields = {
            b"status": _SUCCESS if done else _ERROR,
            b"input": job.payload,
            b"output": result if done else (result or job.reason.encode()),
        }
        self._add(job.id, FinishedJob(job.function, fields, now + KEPT_FOR))

    def add_record(self, record: Record, result: bytes, now: float) -> None:
        """Add a job that ended before, from its record and what is kept of its result. Call `trim` when it was read."""
        done = record.state == JobState.DONE
        output = result if done else (result or record.reason.encode())
        fields = {b"status": _SUCCESS if done else _ERROR, b"output": output}
        expires_at = max(record.finished_at + KEPT_FOR, now + 1.0)
        full_size = record.full_size if len(result) < record.full_size else 0
        self._put(record.id, FinishedJob(record.function, fields, expires_at, full_size))

    def get(self, key: keys.Key, now: float) -> FinishedJob | None:
        """The finished job of a key; one that was deleted has no fields."""
        job_hash = self._jobs.get(key.id)
        if job_hash is None or job_hash.function != key.function:
            return None
        if job_hash.expires_at <= now and job_hash.fields:
            self._add(key.id, FinishedJob(key.function, {}, now + KEPT_FOR))
            return self._jobs[key.id]
        return job_hash

    def delete(self, key: keys.Key, now: float) -> None:
        """Hide a job whose record still exists."""
        self._add(key.id, FinishedJob(key.function, {}, now + KEPT_FOR))

    def _add(self, number: int, job_hash: FinishedJob) -> None:
        self._put(number, job_hash)
        self.trim()

    def _put(self, number: int, job_hash: FinishedJob) -> None:
        before = self._jobs.pop(number, None)
        self._jobs[number] = job_hash
        self._bytes += job_hash.size - (before.size if before else 0)

    def trim(self) -> None:
        """Remove the oldest entries that exceed the bounds."""
        while len(self._jobs) > _MOST or (self._bytes > _MOST_BYTES and len(self._jobs) > 1):
            self._bytes -= self._jobs.popitem(last=False)[1].size
