"""The record of what ran: made when a job ends, asked for afterwards."""

import asyncio
import heapq
from collections.abc import Sequence
from typing import Final, Protocol

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import state_number
from geartrain.engine.worker import Worker
from geartrain.job_query import JobQuery
from geartrain.model import Record, pack_attempts
from geartrain.runtime import memory
from geartrain.store.contract import Query, Store
from geartrain.store.memory import MemoryStore
from geartrain.store.memory_record import MemoryRecord

_made: Final = tuple.__new__  # what `Record(...)` does in the end, at a fifth of its cost
_PRUNE_EVERY: Final = 10_000  # looking for the oldest costs as much as there are


def record(job: LiveJob, result: bytes, worker: Worker | None, now: float) -> Record:
    """What is kept of a job that has just ended."""
    if not job.keeps_result:
        result = b""
    facts = (
        job.id, job.handle, job.function, job.unique, job.priority, job.state, job.submitted_at,
        job.started_at, now, job.attempts, job.door, worker.door if worker else "",
        worker.name if worker else b"", job.code, job.reason, result,
        pack_attempts(job.failed_attempts), job.keeps_result,
    )  # fmt: skip
    return _made(Record, facts)


class Pending(Protocol):
    """Records that are on their way to the store."""

    def pending(self, handle: bytes) -> Record | None:
        """The record of this handle, if the store does not have it yet."""

    def all_pending(self) -> Sequence[Record]:
        """Every record that the store does not have yet."""


class MemoryJournal(Journal):
    """The journal of a store that does not outlive the process: only endings are worth writing down."""

    def __init__(self, store: MemoryStore, keep: int, result_limit: int) -> None:
        self.engine: Engine | None = None  # whose journal it is; it knows the time
        self._store = store
        self._keep = keep
        self._result_limit = result_limit
        self._count = 0

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        """Keep the record; when there are clearly too many, forget the oldest."""
        assert self.engine is not None
        self._store.add_record(self._memo(job, result, worker, self.engine.now))
        self._count += 1
        if self._count > self._keep + _PRUNE_EVERY:
            self._count -= self._store.prune(0.0, self._keep)

    def _memo(self, job: LiveJob, result: bytes, worker: Worker | None, now: float) -> MemoryRecord:
        """What `record` says, in the form of the memory store."""
        if len(result) > self._result_limit:
            result = result[: self._result_limit]
        if not job.keeps_result:
            result = b""
        worker_door, name = (worker.door, worker.name) if worker is not None else ("", b"")
        return MemoryRecord(
            job.id, job.handle, job.function, job.unique, job.priority, state_number(job.state), job.submitted_at,
            job.started_at, now, job.attempts, job.door, worker_door, name, job.code, job.reason, result,
            job.failed_attempts, job.keeps_result,
        )  # fmt: skip

    def drained(self) -> None:
        """Give back what the jobs have used."""
        memory.give_back()

    def pending(self, handle: bytes) -> Record | None:
        """Nothing is ever on its way."""
        return None

    def all_pending(self) -> Sequence[Record]:
        """The same."""
        return ()


class StoreArchive:
    """The archive of doors and stewards: what is on its way to the store, and the store itself, in a thread."""

    def __init__(self, store: Store, pending: Pending) -> None:
        self._store = store
        self._pending = pending

    async def find(self, handle: bytes) -> Record | None:
        """What came of the job with this handle."""
        if not handle:
            return None
        found = self._pending.pending(handle)
        if found is not None:
            return found
        query = Query(handle=handle, limit=1)
        if not self._store.durable:
            return next(iter(self._store.records(query)), None)
        loop = asyncio.get_running_loop()
        return next(iter(await loop.run_in_executor(None, self._store.records, query)), None)

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        """The records with the highest ids that match, at most `limit`."""
        stored = Query(
            function=query.function,
            state=-1 if query.state is None else int(query.state),
            since=query.since,
            until=query.until,
            limit=limit,
            search=query.search,
            door=query.door,
            below=query.below,
            by_id=True,
        )
        pending = [record for record in self._pending.all_pending() if stored.fits(record)]
        found = await asyncio.get_running_loop().run_in_executor(None, self._store.records, stored)
        by_id = {record.id: record for record in (*pending, *found)}
        return heapq.nlargest(limit, by_id.values(), key=lambda record: record.id)


class RecordArchive(Protocol):
    """Records of finished background jobs, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """What came of the job with this handle; None if it is unknown, forgotten, or not over."""
