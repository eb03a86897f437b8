"""Records: what became of background jobs that have ended. Made when a job ends, looked up afterwards."""

import asyncio
import dataclasses
import heapq
from collections.abc import Sequence
from typing import Final, Protocol

from geartrain.engine.failed_jobs import ATTEMPTS_KEPT
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import FAILED
from geartrain.engine.policy import FunctionPolicy
from geartrain.engine.worker import Worker
from geartrain.job_query import JobQuery
from geartrain.model import Attempt, FailedPayload, JobState, Record, pack_attempts, pack_progress
from geartrain.store.contract import Query, Store
from geartrain.store.payload_store import as_payload_store

_READ_JOBS: Final = 5000  # that are read at a time
_READ_BYTES: Final = 16 * 1024 * 1024  # payloads that are read at a time
_REASONS_READ: Final = 500  # records per reading of the store; it cannot select by a group of reasons
_new: Final = tuple.__new__  # what `Record(...)` does in the end, at a fifth of its cost


def make_record(
    job: LiveJob, result: bytes, worker: Worker | None, now: float, keep_until: float = 0.0, remove_at: float = 0.0
) -> Record:
    """The record of a job that has just ended."""
    if not job.keeps_result:
        result = b""
    values = (
        job.id, job.handle, job.function, job.unique, job.priority, job.state, job.submitted_at,
        job.started_at, now, job.attempts, job.door, worker.door if worker else "",
        worker.name if worker else b"", job.code, job.reason, result,
        pack_attempts(job.failed_attempts), job.keeps_result, 0, 0, keep_until, remove_at, last_progress(job),
    )  # fmt: skip
    return _new(Record, values)


def own_retention(job: LiveJob, now: float, policy: FunctionPolicy | None) -> tuple[float, float]:
    """`keep_until` and `remove_at` of the record: its submitter or its function may say how long it is kept."""
    if policy is not None:
        seconds = policy.keep_failed_for if job.state is FAILED else policy.keep_for
        if seconds is not None:
            return 0.0, now + max(seconds, job.keep_for)
    return now + job.keep_for if job.keep_for else 0.0, 0.0


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


class RecordChanges:
    """Changes of records that the store does not have yet."""

    __slots__ = ("payloads", "records", "removed")

    def __init__(self) -> None:
        self.records: dict[bytes, Record] = {}  # by handle
        self.payloads: dict[int, bytes] = {}  # of failed jobs that are kept whole, by id
        self.removed: set[int] = set()  # ids of jobs whose record the store still has


class RecordArchive(Protocol):
    """Records of background jobs that have ended, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """The record of the job with this handle; None if it is unknown, pruned, or has not ended."""

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        """The records with the highest ids that match, at most `limit`."""

    async def result(self, record: Record) -> bytes:
        """All that is kept of the result; shorter than `record.full_size` if it was cut or removed."""

    async def log(self, id: int) -> bytes:
        """The log of a job, also of one that has not ended; empty if there is none."""

    async def payloads(self, records: Sequence[Record], longest: int) -> dict[int, FailedPayload]:
        """The payloads of those jobs that failed and are kept whole, by id, with at most `longest` bytes of each."""

    async def cold_payloads(self, jobs: Sequence[LiveJob], longest: int) -> dict[int, bytes]:
        """The payloads of those of these jobs that are cold, by id, with at most `longest` bytes of each."""

    async def find_cold(self, jobs: Sequence[LiveJob], text: bytes) -> list[int]:
        """The ids of those of these jobs that are cold and have a text in their payloads."""

    async def ends(self, first: int, last: int) -> dict[int, JobState]:
        """How those jobs with ids in this range have ended that have a record, by id."""

    async def whole_jobs(self, ids: Sequence[int]) -> list[LiveJob]:
        """Those of these jobs that ended badly and are kept whole. They must be durable."""

    async def failed_jobs(self, records: Sequence[Record]) -> list[LiveJob | None]:
        """Jobs that failed, ready to be retried; None for one that is not kept whole.

        The records must be durable. If the payloads are large, only the first jobs of the list are returned.
        """


class StoreArchive:
    """The archive of a server: records that the committer has not written yet, and those in the store."""

    def __init__(self, store: Store, uncommitted: RecordChanges) -> None:
        self._store = store
        self._payloads = as_payload_store(store)
        self._uncommitted = uncommitted

    async def find(self, handle: bytes) -> Record | None:
        """The record of the job with this handle; None if it is unknown, pruned, or has not ended."""
        if not handle:
            return None
        record = self._uncommitted.records.get(handle)
        if record is not None:
            return record
        query = Query(handle=handle, limit=1)
        if not self._store.durable:  # memory answers at once
            return next(iter(self._store.records(query)), None)
        removed = set(self._uncommitted.removed)  # before the store is read: it may be written meanwhile
        record = next(iter(await self._read(query)), None)
        return None if record is None or record.id in removed else record

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
            least=query.least,
        )
        # Before the store is read: it may be written meanwhile.
        removed, payloads = set(self._uncommitted.removed), self._uncommitted.payloads
        uncommitted = [
            record
            for record in self._uncommitted.records.values()
            if store_query.matches(record, payloads.get(record.id, b""))
        ]
        # As many more as may have to be left out: a short answer means that there are no others.
        read = await self._read(store_query._replace(limit=limit + len(removed)))
        stored = [record for record in read if record.id not in removed]
        by_id = {record.id: record for record in (*stored, *uncommitted)}
        return heapq.nlargest(limit, by_id.values(), key=lambda record: record.id)

    async def result(self, record: Record) -> bytes:
        """All that is kept of the result; shorter than `record.full_size` if it was cut or removed."""
        if record.kept_size <= len(record.result):
            return record.result
        return await asyncio.get_running_loop().run_in_executor(None, self._store.kept_result, record)

    async def log(self, id: int) -> bytes:
        """What of the log of a job the store has: whoever adds to it waits until it is there."""
        return await asyncio.get_running_loop().run_in_executor(None, self._store.job_log, id)

    async def payloads(self, records: Sequence[Record], longest: int) -> dict[int, FailedPayload]:
        """The payloads of those jobs that failed and are kept whole, by id, with at most `longest` bytes of each."""
        ids = [record.id for record in records if record.state == FAILED]
        if not ids:
            return {}
        new = {id: self._uncommitted.payloads[id] for id in ids if id in self._uncommitted.payloads}
        kept = await asyncio.get_running_loop().run_in_executor(None, self._store.payloads, ids, longest)
        for id, payload in new.items():
            kept[id] = FailedPayload(len(payload), payload[:longest])
        return kept

    async def cold_payloads(self, jobs: Sequence[LiveJob], longest: int) -> dict[int, bytes]:
        """The payloads of those of these jobs that are cold, by id, with at most `longest` bytes of each."""
        ids = [job.id for job in jobs if job.is_cold]
        if not ids or self._payloads is None:
            return {}
        return await asyncio.get_running_loop().run_in_executor(None, self._payloads.job_payloads, ids, longest)

    async def find_cold(self, jobs: Sequence[LiveJob], text: bytes) -> list[int]:
        """The ids of those of these jobs that are cold and have a text in their payloads."""
        ids = [job.id for job in jobs if job.is_cold]
        if not ids or self._payloads is None:
            return []
        return await asyncio.get_running_loop().run_in_executor(None, self._payloads.find_payloads, ids, text)

    async def failed_jobs(self, records: Sequence[Record]) -> list[LiveJob | None]:
        """Jobs that failed, ready to be retried; None for one that is not kept whole."""
        ids = [record.id for record in records]
        loop = asyncio.get_running_loop()
        jobs = await loop.run_in_executor(None, self._store.failed_jobs, ids, LiveJob, _READ_BYTES)
        for record, job in zip(records, jobs, strict=False):
            if job is not None:
                _add_last_attempt(job, record)
        return jobs

    async def ends(self, first: int, last: int) -> dict[int, JobState]:
        """How those jobs with ids in this range have ended that have a record, by id."""
        # Before the store is read: it may be written meanwhile.
        removed = set(self._uncommitted.removed)
        new = {
            record.id: JobState(record.state)
            for record in self._uncommitted.records.values()
            if first <= record.id <= last
        }
        stored = await asyncio.get_running_loop().run_in_executor(None, self._store.ends, first, last)
        return {id: state for id, state in stored.items() if id not in removed} | new

    async def whole_jobs(self, ids: Sequence[int]) -> list[LiveJob]:
        """Those of these jobs that ended badly and are kept whole. They must be durable."""
        loop = asyncio.get_running_loop()
        removed = set(self._uncommitted.removed)  # before the store is read: it may be written meanwhile
        jobs: list[LiveJob] = []
        while ids:
            part = ids[:_READ_JOBS]
            read = await loop.run_in_executor(None, self._store.failed_jobs, part, LiveJob, _READ_BYTES)
            jobs += [job for job in read if job is not None and job.id not in removed]
            ids = ids[len(read) :]
        return jobs

    async def _read(self, query: Query) -> list[Record]:
        return await asyncio.get_running_loop().run_in_executor(None, self._store.records, query)


def _add_last_attempt(job: LiveJob, record: Record) -> None:
    """Add the attempt that failed the job to those that it has."""
    last = Attempt(record.started_at, record.finished_at, record.worker_door, record.worker, record.reason)
    job.failed_attempts = [*(job.failed_attempts or ())[1 - ATTEMPTS_KEPT :], last]
