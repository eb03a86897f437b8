"""Records: what became of background jobs that have ended. Made when a job ends, looked up afterwards."""

import asyncio
import dataclasses
import heapq
from collections.abc import Mapping
from typing import Final, Protocol

from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record, pack_attempts, pack_progress
from geartrain.store.contract import Query, Store

_REASONS_READ: Final = 500  # records per reading of the store; it cannot select by a group of reasons
_new: Final = tuple.__new__  # what `Record(...)` does in the end, at a fifth of its cost


def make_record(job: LiveJob, result: bytes, worker: Worker | None, now: float) -> Record:
    """The record of a job that has just ended."""
    if not job.keeps_result:
        result = b""
    keep_until = now + job.keep_for if job.keep_for else 0.0
    values = (
        job.id, job.handle, job.function, job.unique, job.priority, job.state, job.submitted_at,
        job.started_at, now, job.attempts, job.door, worker.door if worker else "",
        worker.name if worker else b"", job.code, job.reason, result,
        pack_attempts(job.failed_attempts), job.keeps_result, 0, 0, keep_until, last_progress(job),
    )  # fmt: skip
    return _new(Record, values)


def last_progress(job: LiveJob) -> str:
    """The last progress of a job for its record."""
    progress = job.progress
    if progress is None:
        return ""
    return pack_progress(progress.numerator, progress.denominator, progress.seconds_left)


def cut_result(record: Record, largest: int) -> Record:
    """The record with this many bytes of its result."""
    size = len(record.result)
    return record._replace(result=record.result[:largest], result_size=size, result_kept=largest)


class RecordArchive(Protocol):
    """Records of background jobs that have ended, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """The record of the job with this handle; None if it is unknown, pruned, or has not ended."""

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        """The records with the highest ids that match, at most `limit`."""

    async def result(self, record: Record) -> bytes:
        """All that is kept of the result; shorter than `record.full_size` if it was cut or removed."""


class StoreArchive:
    """The archive of a server: records that the committer has not written yet, and those in the store."""

    def __init__(self, store: Store, uncommitted: Mapping[bytes, Record]) -> None:
        self._store = store
        self._uncommitted = uncommitted  # by handle

    async def find(self, handle: bytes) -> Record | None:
        """The record of the job with this handle; None if it is unknown, pruned, or has not ended."""
        if not handle:
            return None
        record = self._uncommitted.get(handle)
        if record is not None:
            return record
        query = Query(handle=handle, limit=1)
        if not self._store.durable:  # memory answers at once
            return next(iter(self._store.records(query)), None)
        return next(iter(await self._read(query)), None)

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        """The records with the highest ids that match, at most `limit`."""
        if not query.reason:
            return await self._newest(query, limit)
        records: list[Record] = []
        query = dataclasses.replace(query, state=query.state or JobState.FAILED)
        while len(records) < limit:
            page = await self._newest(query, _REASONS_READ)
            records += [record for record in page if query.matches_reason(record.state, record.reason)]
            if len(page) < _REASONS_READ:
                break
            query = dataclasses.replace(query, below=page[-1].id)
        return records[:limit]

    async def _newest(self, query: JobQuery, limit: int) -> list[Record]:
        """The same, whatever the reason."""
        store_query = Query(
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
        uncommitted = [record for record in self._uncommitted.values() if store_query.matches(record)]
        by_id = {record.id: record for record in (*uncommitted, *await self._read(store_query))}
        return heapq.nlargest(limit, by_id.values(), key=lambda record: record.id)

    async def result(self, record: Record) -> bytes:
        """All that is kept of the result; shorter than `record.full_size` if it was cut or removed."""
        if record.kept_size <= len(record.result):
            return record.result
        return await asyncio.get_running_loop().run_in_executor(None, self._store.kept_result, record)

    async def _read(self, query: Query) -> list[Record]:
        return await asyncio.get_running_loop().run_in_executor(None, self._store.records, query)
