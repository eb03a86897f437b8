"""Finding jobs among a million without holding up the loop.

A list of all jobs is made in one go, which takes fifty nanoseconds for each: nothing for a thousand, too long for a
million. So beyond some number jobs are looked up one by one by their ids, the newest first; whoever wants a page of the
newest is done after a hundred. Between slices the loop comes round.

Ids from before this start may lie far apart. They are written down once, when they are first needed. Where ids of this
start lie so far apart that looking them up would take too long, the list is made after all.
"""

import array
import asyncio
import bisect
import heapq
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable
from geartrain.model import JobState

LISTED_IN_ONE_GO: Final = 20_000
_LOOKUPS_PER_JOB: Final = 20  # before we give up looking ids up
_SLICE: Final = 250  # jobs between two looks at the clock
_SLICE_SECONDS: Final = 0.004

Home = JobTable | dict[int, LiveJob]


class Breath:
    """Lets the loop come round when enough time has passed."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def take(self) -> None:
        """Go on at once, or after a turn of the loop."""
        if time.perf_counter() - self._began > _SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


class Rolls:
    """The jobs of an engine that are not over. Made before the jobs of before are taken over."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._first_id = engine.next_id  # of this start
        self._before: array.array[int] | None = None  # ids from before it, in order; some of them are over by now

    async def newest(
        self, fits: Callable[[LiveJob], bool], state: JobState | None, below: int, most: int
    ) -> list[LiveJob]:
        """The jobs with the highest ids that fit, below an id unless it is 0. Some may be over when this returns."""
        homes = self._homes(state)
        if sum(map(len, homes)) <= LISTED_IN_ONE_GO:
            return await _sifted(homes, fits, below or self._engine.next_id, most)
        return await self._walked(homes, fits, below, most)

    def _homes(self, state: JobState | None) -> list[Home]:
        if state is None:
            return [self._engine.jobs, self._engine.dead]
        return [self._engine.dead if state is JobState.DEAD else self._engine.jobs]

    async def _walked(self, homes: list[Home], fits: Callable[[LiveJob], bool], below: int, most: int) -> list[LiveJob]:
        """The same by looking ids up, the highest first, until there are enough."""
        top = min(below, self._engine.next_id) if below else self._engine.next_id
        patience = max(self._first_id, top - _LOOKUPS_PER_JOB * sum(map(len, homes)))
        found: list[LiveJob] = []
        breath = Breath()
        for ids in itertools.chain(_slices(range(top - 1, patience - 1, -1)), self._older(top, patience)):
            found += filter(fits, _looked_up(homes, ids))
            if len(found) >= most:
                return found[:most]
            await breath.take()
        if patience > self._first_id:
            found += await _sifted(homes, fits, patience, most - len(found))
        return found

    def _older(self, top: int, patience: int) -> Iterator[Sequence[int]]:
        """Slices of the ids from before this start, unless we have lost patience on the way there."""
        if patience > self._first_id:
            return
        before = self._from_before()
        last = bisect.bisect_left(before, top)
        for places in _slices(range(last - 1, -1, -1)):
            yield [before[place] for place in places]

    def _from_before(self) -> "array.array[int]":
        if not self._engine.restored:
            return array.array("q")
        if self._before is None:
            first = self._first_id
            self._before = array.array("q", sorted(id for home in self._homes(None) for id in home if id < first))
        return self._before


async def _sifted(homes: list[Home], fits: Callable[[LiveJob], bool], below: int, most: int) -> list[LiveJob]:
    """The same, by making a list of all."""
    jobs = [job for home in homes for job in home.values()]
    best: list[LiveJob] = []
    breath = Breath()
    while jobs:  # from the end: so the list shrinks as it is used, and is not let go of in one go
        best += [job for job in jobs[-_SLICE:] if job.id < below and fits(job)]
        del jobs[-_SLICE:]
        if len(best) > 2 * most + _SLICE:
            best = heapq.nlargest(most, best, key=_id)
        await breath.take()
    return heapq.nlargest(most, best, key=_id)


def _looked_up(homes: list[Home], ids: Iterable[int]) -> list[LiveJob]:
    return [job for id in ids for home in homes if (job := home.get(id)) is not None]


def _slices(places: range) -> Iterator[range]:
    return (places[start : start + _SLICE] for start in range(0, len(places), _SLICE))


def _id(job: LiveJob) -> int:
    return job.id
