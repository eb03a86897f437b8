"""Finding jobs that have not ended, newest first, without holding up the event loop.

The newest job is the one with the highest id. Where there are few jobs, all are tested; where there are many, ids are
looked up one by one, because a page needs only some of the newest.

Jobs of earlier starts have lower ids than those of this one. In a cluster, jobs that were taken over from other servers
may have higher ones.
"""

import array
import bisect
import heapq
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

from geartrain.admin.loop_break import SLICE, LoopBreak
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable
from geartrain.model import JobState

FILTERED_AT_ONCE: Final = 20_000
_LOOKUPS_PER_JOB: Final = 20  # then every job is tested instead
_ABOVE_ALL_IDS: Final = 2**63

Matches = Callable[[LiveJob], bool]
Prepare = Callable[[Sequence[LiveJob]], Awaitable[None]]
JobsById = JobTable | dict[int, LiveJob]


class JobScanner:
    """Finds jobs that have not ended, newest first. Created before the jobs of the last run are restored."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._first_id = engine.next_id  # of this run of the server
        self._restored_ids: array.array[int] | None = None  # of jobs of other runs, ascending; some have ended
        self._restored = 0  # how many jobs had been restored when these were found

    def forget_restored(self) -> None:
        """Jobs with ids of earlier runs were added: find all of them again."""
        self._restored_ids = None

    async def newest(
        self, matches: Matches, state: JobState | None, below: int, most: int, prepare: Prepare | None = None
    ) -> list[LiveJob]:
        """The jobs with the highest ids that match, below an id unless it is 0. Some may have ended on return.

        `prepare` is awaited with jobs before they are tested.
        """
        tables = self._tables(state)
        if sum(map(len, tables)) <= FILTERED_AT_ONCE:
            return await _filter_all(tables, matches, below or _ABOVE_ALL_IDS, most, prepare)
        return await self._look_up_ids(tables, matches, below, most, prepare)

    def _tables(self, state: JobState | None) -> list[JobsById]:
        if state is None:
            return [self._engine.jobs, self._engine.dead]
        return [self._engine.dead if state is JobState.DEAD else self._engine.jobs]

    async def _look_up_ids(
        self, tables: list[JobsById], matches: Matches, below: int, most: int, prepare: Prepare | None
    ) -> list[LiveJob]:
        """The same by looking up ids in descending order until there are enough: most ids near the top exist."""
        top = min(below, self._engine.next_id) if below else self._engine.next_id
        lowest = max(self._first_id, top - _LOOKUPS_PER_JOB * sum(map(len, tables)))
        jobs: list[LiveJob] = []
        loop_break = LoopBreak()
        async for ids in self._descending_ids(top, lowest, below or _ABOVE_ALL_IDS):
            tested = _jobs_with(tables, ids)
            if prepare is not None:
                await prepare(tested)
            jobs += filter(matches, tested)
            if len(jobs) >= most:
                return jobs[:most]
            await loop_break.take()
        if lowest > self._first_id:
            jobs += await _filter_all(tables, matches, lowest, most - len(jobs), prepare)
        return jobs

    async def _descending_ids(self, top: int, lowest: int, below: int) -> AsyncIterator[Sequence[int]]:
        """Slices of ids: higher ones of other runs, those of this run, and lower ones if the look-up goes that far."""
        restored = await self._other_ids() if self._engine.restored else array.array("q")
        middle = bisect.bisect_left(restored, self._first_id)
        for places in _slices(range(bisect.bisect_left(restored, below) - 1, middle - 1, -1)):
            yield [restored[place] for place in places]
        for ids in _slices(range(top - 1, lowest - 1, -1)):
            yield ids
        if lowest > self._first_id:
            return
        for places in _slices(range(bisect.bisect_left(restored, min(top, self._first_id)) - 1, -1, -1)):
            yield [restored[place] for place in places]

    async def _other_ids(self) -> "array.array[int]":
        """The ids of jobs of other runs; some jobs have ended."""
        if self._restored_ids is None or self._restored != self._engine.restored:
            self._restored = self._engine.restored
            self._restored_ids = await self._find_restored()
        return self._restored_ids

    async def _find_restored(self) -> "array.array[int]":
        ids: list[int] = []
        own = range(self._first_id, self._engine.next_id)
        loop_break = LoopBreak()
        jobs = itertools.chain(self._engine.jobs.walk(), list(self._engine.dead.values()))
        while slice := list(itertools.islice(jobs, SLICE)):
            ids += [job.id for job in slice if job.id not in own]
            await loop_break.take()
        ids.sort()  # quick: they are in order already, except for those of dead jobs
        return array.array("q", ids)


async def _filter_all(
    tables: list[JobsById], matches: Matches, below: int, most: int, prepare: Prepare | None
) -> list[LiveJob]:
    """The same by testing every job."""
    jobs = [job for table in tables for job in table.values()]
    best: list[LiveJob] = []
    loop_break = LoopBreak()
    while jobs:  # from the end: the list shrinks as it is used, instead of being freed at once
        if prepare is not None:
            await prepare([job for job in jobs[-SLICE:] if job.id < below])
        best += [job for job in jobs[-SLICE:] if job.id < below and matches(job)]
        del jobs[-SLICE:]
        if len(best) > 2 * most + SLICE:
            best = heapq.nlargest(most, best, key=_id)
        await loop_break.take()
    return heapq.nlargest(most, best, key=_id)


def _jobs_with(tables: list[JobsById], ids: Iterable[int]) -> list[LiveJob]:
    return [job for id in ids for table in tables if (job := table.get(id)) is not None]


def _slices(places: range) -> Iterator[range]:
    return (places[start : start + SLICE] for start in range(0, len(places), SLICE))


def _id(job: LiveJob) -> int:
    return job.id
