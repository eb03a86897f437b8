"""Hashes of finished jobs, for as long as they would stay in Redis.

This is a bounded cache in front of the records: what it no longer has is read there, without the input.
"""

from collections import OrderedDict
from typing import Final

from geartrain.doors.gearmonkey import keys, written_fields
from geartrain.doors.gearmonkey.written_fields import INPUT, OUTPUT, STATUS, Fields, WrittenHash
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

    __slots__ = ("expires_at", "fields", "full_size", "function", "lacks_output", "size")

    def __init__(self, function: bytes, fields: Fields, expires_at: float) -> None:
        self.function = function
        self.fields = fields  # empty: deleted
        self.expires_at = expires_at
        self.lacks_output = False  # its worker has written none yet
        self.full_size = 0  # of an output of which only the beginning is kept; 0: all of it is
        self.size = _OVERHEAD + written_fields.size_of(fields)

    def with_fields(self, fields: Fields) -> "FinishedJob":
        """The same job with other fields."""
        changed = FinishedJob(self.function, fields, self.expires_at)
        changed.lacks_output = self.lacks_output and OUTPUT not in fields
        changed.full_size = self.full_size
        return changed


class FinishedJobs:
    """By id, the oldest first."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[int, FinishedJob] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: LiveJob, result: bytes, now: float, written: WrittenHash | None = None) -> None:
        """Add a job that ends now; `written` is what was written to its hash and is not known otherwise."""
        done = job.state is JobState.DONE
        fields = {STATUS: _SUCCESS if done else _ERROR}
        if not job.is_cold:
            fields[INPUT] = job.payload
        lacks_output = False
        if written is not None:
            report = written.report
            lacks_output = report.get(STATUS) == fields[STATUS] and OUTPUT not in report
            fields |= written.own
            fields |= {name: value for name, value in report.items() if name not in (STATUS, OUTPUT)}
        if not lacks_output:
            fields[OUTPUT] = result if done else (result or job.reason.encode())
        finished = FinishedJob(job.function, fields, now + KEPT_FOR)
        finished.lacks_output = lacks_output
        self._add(job.id, finished)

    def add_record(self, record: Record, result: bytes, now: float) -> None:
        """Add a job that ended before, from its record and what is kept of its result. Call `trim` when it was read."""
        done = record.state == JobState.DONE
        output = result if done else (result or record.reason.encode())
        fields = {STATUS: _SUCCESS if done else _ERROR, OUTPUT: output}
        expires_at = max(record.finished_at + KEPT_FOR, now + 1.0)
        finished = FinishedJob(record.function, fields, expires_at)
        finished.full_size = record.full_size if len(result) < record.full_size else 0
        self._put(record.id, finished)

    def get(self, key: keys.Key, now: float) -> FinishedJob | None:
        """The finished job of a key; one that was deleted has no fields."""
        job_hash = self._jobs.get(key.id)
        if job_hash is None or job_hash.function != key.function:
            return None
        if job_hash.expires_at <= now and job_hash.fields:
            self._add(key.id, FinishedJob(key.function, {}, now + KEPT_FOR))
            return self._jobs[key.id]
        return job_hash

    def write(self, key: keys.Key, fields: Fields, now: float) -> None:
        """Write fields of a finished job."""
        finished = self.get(key, now)
        if finished is not None:
            self._replace(key.id, finished.with_fields({**finished.fields, **fields}))

    def strip(self, key: keys.Key, names: list[bytes], now: float) -> int:
        """Delete fields of a finished job; returns how many there were."""
        finished = self.get(key, now)
        if finished is None:
            return 0
        left = {name: value for name, value in finished.fields.items() if name not in names}
        self._replace(key.id, finished.with_fields(left))
        return len(finished.fields) - len(left)

    def delete(self, key: keys.Key, now: float) -> None:
        """Hide a job whose record still exists."""
        self._add(key.id, FinishedJob(key.function, {}, now + KEPT_FOR))

    def _replace(self, number: int, job_hash: FinishedJob) -> None:
        """Put a job in the place of its older state."""
        self._bytes += job_hash.size - self._jobs[number].size
        self._jobs[number] = job_hash

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
