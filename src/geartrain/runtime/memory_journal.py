"""The journal of a store that does not outlive the process: only the ends of jobs are recorded."""

import math
from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import state_number
from geartrain.engine.worker import Worker
from geartrain.model import RareFields
from geartrain.runtime import memory
from geartrain.runtime.records import last_progress
from geartrain.store.contract import Quota, Retention, row
from geartrain.store.memory import MemoryRecord, MemoryStore

_PRUNE_EVERY: Final = 10_000  # records
_NONE: Final = RareFields()


class MemoryJournal(Journal):
    """The twin of the committer, over a memory store."""

    def __init__(self, store: MemoryStore, keep: Retention) -> None:
        self.engine: Engine | None = None  # whose journal it is; it has the time
        self._store = store
        # Only numbers count here: finding what is too old would take a pass over all records.
        self._keep = Retention(Quota(math.inf, keep.done.most), Quota(math.inf, keep.failed.most))
        self._unpruned = 0

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        """Add the record, and prune the oldest from time to time."""
        assert self.engine is not None
        self._store.add_record(self._make_record(job, result, worker, self.engine.now))
        self._unpruned += 1
        if self._unpruned >= _PRUNE_EVERY:
            self.prune()

    def prune(self) -> None:
        """Remove the oldest records that exceed the quotas."""
        assert self.engine is not None
        self._unpruned = 0
        self._store.prune(self.engine.now, self._keep)

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        """Add the record, and the job as a whole."""
        self.finished(job, result, worker)
        self._store.add_failed(row(job))

    def retried(self, job: LiveJob) -> None:
        """Remove the record; the job is the engine's again."""
        self._store.remove_record(job.id, keep_log=True)

    def remove_record(self, id: int) -> None:
        """Remove the record of a job, with all that is kept of it."""
        self._store.remove_record(id)

    def add_log(self, id: int, added: bytes) -> None:
        """Add lines to the log of a job."""
        self._store.add_log(id, added)

    def drained(self) -> None:
        """Return freed memory to the system."""
        memory.trim()

    def save_value(self, name: str, value: bytes) -> None:
        """Save it for a dump."""
        self._store.save_value(name, value)

    def _make_record(self, job: LiveJob, result: bytes, worker: Worker | None, now: float) -> MemoryRecord:
        """The same as `records.make_record`, in the form of the memory store."""
        if not job.keeps_result:
            result = b""
        worker_door, name = (worker.door, worker.name) if worker is not None else ("", b"")
        rare = job.rare if job.rare is not None else _NONE
        return MemoryRecord(
            job.id, job.handle, job.function, job.unique, job.priority, state_number(job.state), job.submitted_at,
            job.started_at, now, job.attempts, job.door, worker_door, name, rare.code, rare.reason, result,
            rare.failed_attempts, job.keeps_result, "" if job.progress is None else last_progress(job),
        )  # fmt: skip
