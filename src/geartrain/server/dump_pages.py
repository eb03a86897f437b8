"""Dumps of the running server, in pages.

A page has lines of the dump format. Every line is made at one moment, so it shows a job as it is then. While pages are
asked for, the server goes on: jobs end, fail, and are retried. Whoever asks for all parts in their order has every
background job that was accepted before and has not ended:

1. `jobs` has those that had not ended when their page was made;
2. `failed`, or `records`, has those that failed meanwhile or before;
3. `retried` has those that were neither: they had failed during the first part, and not during the second.

A job may be in two parts. The client leaves out ids that it has.
"""

import asyncio
import bisect
import heapq
import itertools
import sys
from array import array
from collections.abc import Sequence
from typing import Final

from geartrain.admin.loop_break import SLICE, LoopBreak
from geartrain.admin.views import DumpPage
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Observer
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import Job, JobState, Record
from geartrain.runtime.committer import IDS_RESERVED
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall
from geartrain.store import dump, rows
from geartrain.store.contract import DONE, Store

PAGE_BYTES: Final = 1024 * 1024  # a page ends with the line that exceeds this
RECORDS_READ: Final = 1000  # at a time
DUMPS_MOST: Final = 4  # at the same time
FORGET_SECONDS: Final = 600.0  # after the last page, if the client does not ask for the others
_COLD_READ: Final = 1000  # jobs at a time whose payloads are on disk
_LOOKS: Final = 10  # for a job that is retried and fails again and again


_ColdPayloads = dict[LiveJob, bytes | None]  # None: the store has none


class _PageLines:
    """The lines of one page."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0
        self._skipped: list[str] = []

    @property
    def full(self) -> bool:
        return self._size > PAGE_BYTES

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)

    def skip(self, id: int, broken: rows.BrokenRowError) -> None:
        """Report a job that the format cannot express."""
        self._skipped.append(f"job {id} skipped: {broken}")

    def page(self, after: int = 0) -> DumpPage:
        return DumpPage(b"".join(self._lines).decode(), str(after) if after else "", self._skipped)


class _Progress(Observer):
    """What a dump needs to know from its first page to its last."""

    def __init__(self, engine: Engine) -> None:
        self.below = engine.next_id  # the ids of jobs that were accepted before
        self.ids: array[int] | None = None  # of the part `jobs`, ascending, some twice
        self.retried: dict[int, bytes] = {}  # the handles of jobs that were retried since then, by id
        self.ends: DelayedCall | None = None

    def requeued(self, job: LiveJob, reason: str) -> None:
        if job.id < self.below:
            self.retried[job.id] = job.handle


class DumpPages:
    """One per server."""

    def __init__(self, tick_loop: TickLoop, store: Store, archive: RecordArchive) -> None:
        self._tick_loop = tick_loop
        self._engine = tick_loop.engine
        self._store = store
        self._archive = archive
        self._dumps: dict[int, _Progress] = {}
        self._next_dump = 1

    async def page(self, part: str, number: int, after: int) -> DumpPage:
        """A page of a dump that was begun with `begin`."""
        progress = self._dumps.get(number)
        if progress is None:
            raise AdminError("not-found", f"there is no dump {number}, or it was not asked for in time; begin again")
        self._keep(number, progress)
        if part == "values":
            return await self._values()
        if part == "jobs":
            return await self._jobs(progress, after)
        if part == "retried":
            return await self._retried(number, progress)
        return await self._records(after or progress.below, only_whole=part == "failed")

    def begin(self) -> DumpPage:
        """Begin a dump. The page has its first line, and its number in `after`.

        The next id in that line leaves room for the jobs that this server accepts while the dump is moved.
        """
        if len(self._dumps) >= DUMPS_MOST:
            raise AdminError("conflict", f"{DUMPS_MOST} dumps are being made; wait until one of them ends")
        engine = self._tick_loop.begin_tick()
        number, self._next_dump = self._next_dump, self._next_dump + 1
        progress = self._dumps[number] = _Progress(engine)
        engine.subscribe(progress)
        self._keep(number, progress)
        return DumpPage(dump.header(engine.now, engine.next_id + IDS_RESERVED).decode(), str(number), [])

    def _keep(self, number: int, progress: _Progress) -> None:
        if progress.ends is not None:
            progress.ends.cancel()
        progress.ends = self._tick_loop.timers.call_later(FORGET_SECONDS, lambda: self._end(number))

    def _end(self, number: int) -> None:
        progress = self._dumps.pop(number, None)
        if progress is not None:
            self._engine.unsubscribe(progress)
            if progress.ends is not None:
                progress.ends.cancel()

    async def _values(self) -> DumpPage:
        """Schedules, settings of functions and configurations of doors."""
        await self._tick_loop.durable()  # the store has what is read below
        values = await asyncio.get_running_loop().run_in_executor(None, self._store.saved_values)
        lines = _PageLines()
        for name, value in sorted(values.items()):
            if value:
                lines.add(dump.value_line(dump.SavedValue(name, value)))
        return lines.page()

    async def _jobs(self, progress: _Progress, after: int) -> DumpPage:
        """Background jobs that have not ended, dead ones included, with ids above this one."""
        if progress.ids is None:
            progress.ids = await self._find_ids(progress.below)
        ids = progress.ids
        lines = _PageLines()
        loop_break = LoopBreak()
        place = bisect.bisect_right(ids, after)
        while place < len(ids) and not lines.full:
            cold = await self._read_cold(ids, place)
            while place < len(ids) and not lines.full and self._add_job(lines, ids[place], cold):
                place += 1
                await loop_break.take()
        return lines.page(ids[place - 1] if place < len(ids) else 0)

    async def _records(self, below: int, only_whole: bool) -> DumpPage:
        """Records of finished jobs, the highest ids first; with `only_whole`, of failed jobs that are kept whole."""
        await self._tick_loop.durable()
        records = await self._archive.newest(JobQuery(below=below), RECORDS_READ)
        jobs = await self._failed_jobs([record for record in records if record.state != DONE])
        lines = _PageLines()
        loop_break = LoopBreak()
        last = 0
        for record in records:
            if lines.full or (record.state != DONE and record.id not in jobs):
                return lines.page(last)
            last = record.id
            job = jobs.get(record.id)
            if job is not None or not only_whole:
                await self._add_record(lines, record, job)
            await loop_break.take()
        return lines.page(last if len(records) == RECORDS_READ else 0)

    async def _retried(self, number: int, progress: _Progress) -> DumpPage:
        """Jobs that were retried, as they are now. The last page ends the dump."""
        lines = _PageLines()
        loop_break = LoopBreak()
        while progress.retried and not lines.full:
            id, handle = progress.retried.popitem()
            await self._add_retried(lines, id, handle)
            await loop_break.take()
        if progress.retried:
            return lines.page(1)
        self._end(number)
        return lines.page()

    async def _add_retried(self, lines: _PageLines, id: int, handle: bytes) -> None:
        """Add the line of a job that has not ended or failed again. It may change while its record is read."""
        for _ in range(_LOOKS):
            if self._is_live(id):
                if self._add_job(lines, id, await self._read_cold([id], 0)):
                    return
                continue
            await self._tick_loop.durable()
            record = await self._archive.find(handle)
            if record is not None and record.state == DONE:
                return
            job = None if record is None else (await self._failed_jobs([record])).get(id)
            if record is not None and job is not None:
                await self._add_record(lines, record, job)
                return

    async def _read_cold(self, ids: "Sequence[int] | array[int]", place: int) -> _ColdPayloads:
        """The payloads of the next jobs that are cold, as many as fit into a page, and one at least."""
        jobs: list[LiveJob] = []
        size = 0
        while place < len(ids) and (not jobs or size < PAGE_BYTES) and len(jobs) < _COLD_READ:
            job = self._live(ids[place])
            place += 1
            if job is not None:
                size += job.payload_size
                if job.is_cold:
                    jobs.append(job)
        payloads = await self._archive.cold_payloads(jobs, sys.maxsize)
        return {job: payloads.get(job.id) for job in jobs}

    def _live(self, id: int) -> LiveJob | None:
        return self._engine.jobs.get(id) or self._engine.dead.get(id)

    def _add_job(self, lines: _PageLines, id: int, cold: _ColdPayloads) -> bool:
        """Add the line of a job that has not ended; return False if its payload has to be read first."""
        job = self._live(id)
        if job is None or not job.background or job.function in self._engine.builtin_workers:
            return True
        if job.state is JobState.RESERVING:  # it is not accepted yet
            return True
        if job.is_cold and job not in cold:
            return False
        payload = cold[job] if job.is_cold else job.payload
        try:
            if payload is None:
                raise rows.BrokenRowError("the store has no payload of it")
            lines.add(dump.job_line(job, payload))
        except rows.BrokenRowError as broken:
            lines.skip(id, broken)
        return True

    async def _add_record(self, lines: _PageLines, record: Record, job: Job | None) -> None:
        result = await self._archive.result(record)
        while self._is_live(record.id):  # it was retried since it was read
            if self._add_job(lines, record.id, await self._read_cold([record.id], 0)):
                return
        try:
            lines.add(dump.record_line(dump.with_result(record, result), job))
        except rows.BrokenRowError as broken:
            lines.skip(record.id, broken)

    def _is_live(self, id: int) -> bool:
        return id in self._engine.jobs or id in self._engine.dead

    async def _failed_jobs(self, records: Sequence[Record]) -> dict[int, Job | None]:
        """The first of these failed jobs as wholes, by id: as many as fit into a page, and one at least."""
        if not records:
            return {}
        ids = [record.id for record in records]
        loop = asyncio.get_running_loop()
        jobs = await loop.run_in_executor(None, self._store.failed_jobs, ids, Job, PAGE_BYTES)
        return dict(zip(ids, jobs, strict=False))

    async def _find_ids(self, below: int) -> "array[int]":
        """The ids of jobs and dead jobs. Dead ones are the last: a job may die meanwhile."""
        runs = [array("q")]
        loop_break = LoopBreak()
        jobs = self._engine.jobs.walk()
        while slice := list(itertools.islice(jobs, SLICE)):
            ids = sorted(job.id for job in slice)
            if not runs[-1] or ids[0] > runs[-1][-1]:
                runs[-1].extend(ids)
            else:
                runs.append(array("q", ids))
            await loop_break.take()
        runs.append(array("q", sorted(self._engine.dead)))
        return await _merge([run for run in runs if run], below)


async def _merge(runs: list["array[int]"], below: int) -> "array[int]":
    """One ascending array of the ids below this one. Mostly there is one run, and nothing to do."""
    if len(runs) == 1:
        return runs[0][: bisect.bisect_left(runs[0], below)]
    merged = array("q")
    loop_break = LoopBreak()
    ids = itertools.takewhile(lambda id: id < below, heapq.merge(*runs))
    while slice := list(itertools.islice(ids, SLICE)):
        merged.extend(slice)
        await loop_break.take()
    return merged
