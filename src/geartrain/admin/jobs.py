"""Jobs by the page, newest first, and actions on many of them.

The newest is the one with the highest id. Jobs that end while others are looked at are found in the archive, which is
therefore asked last.
"""

import array
import asyncio
import bisect
import heapq
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from geartrain.admin import verbs, views
from geartrain.admin.counts import Counts
from geartrain.admin.server_info import Archive
from geartrain.admin.views import BulkReport, JobView, Page
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable
from geartrain.errors import AdminError, DuplicateKeyError
from geartrain.job_query import ENDED, STATES, JobQuery
from geartrain.model import JobState, Record
from geartrain.runtime.tick import TickLoop

PAGE_MOST: Final = 1000
_PAGE_DEFAULT: Final = 100
LISTED_IN_ONE_GO: Final = 20_000
_LOOKUPS_PER_JOB: Final = 20  # before we give up looking ids up
_SLICE: Final = 250  # jobs between two looks at the clock
_SLICE_SECONDS: Final = 0.004

Home = JobTable | dict[int, LiveJob]


class LoopBreak:
    """Lets the loop come round when enough time has passed."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def take(self) -> None:
        """Go on at once, or after a turn of the loop."""
        if time.perf_counter() - self._began > _SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


class JobScanner:
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
        loop_break = LoopBreak()
        for ids in itertools.chain(_slices(range(top - 1, patience - 1, -1)), self._older(top, patience)):
            found += filter(fits, _looked_up(homes, ids))
            if len(found) >= most:
                return found[:most]
            await loop_break.take()
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
    loop_break = LoopBreak()
    while jobs:  # from the end: so the list shrinks as it is used, and is not let go of in one go
        best += [job for job in jobs[-_SLICE:] if job.id < below and fits(job)]
        del jobs[-_SLICE:]
        if len(best) > 2 * most + _SLICE:
            best = heapq.nlargest(most, best, key=_id)
        await loop_break.take()
    return heapq.nlargest(most, best, key=_id)


def _looked_up(homes: list[Home], ids: Iterable[int]) -> list[LiveJob]:
    return [job for id in ids for home in homes if (job := home.get(id)) is not None]


def _slices(places: range) -> Iterator[range]:
    return (places[start : start + _SLICE] for start in range(0, len(places), _SLICE))


BULK_MOST: Final = 10_000  # jobs in one call; whoever has more calls again


class Action(NamedTuple):
    """What can be done with a job, alone or with many others."""

    states: frozenset[JobState]  # of jobs that it can be applied to
    method: Callable[[Engine, LiveJob], None]


ACTIONS: Final = {
    verb.action: Action(frozenset(STATES[state] for state in verb.states), getattr(Engine, verb.engine_method))
    for verb in verbs.VERBS.values()
    if verb.action
}


async def list_page(engine: Engine, scanner: JobScanner, archive: Archive, query: JobQuery) -> Page[JobView]:
    """One page of the jobs that match."""
    limit = min(query.limit or _PAGE_DEFAULT, PAGE_MOST)
    # One more than the page has, to know whether there is another page.
    living = await _living(engine, scanner, query, limit + 1) if query.state not in ENDED else []
    records = await archive.newest(query, limit + 1) if query.state is None or query.state in ENDED else []
    ended = {record.id for record in records}
    jobs: list[LiveJob | Record] = [*records, *(job for job in living if job.id not in ended)]
    jobs.sort(key=_id, reverse=True)
    page = jobs[:limit]
    after = str(page[-1].id) if len(jobs) > len(page) else ""
    # Jobs of built-in workers are left out: a page may be shorter for it.
    items = [_view(job) for job in page if job.function not in engine.builtin_workers]
    return Page(items, after, _total(engine, query))


async def act_on_all(tick_loop: TickLoop, scanner: JobScanner, name: str, query: JobQuery) -> BulkReport:
    """Apply an action to every job that matches, up to a bound."""
    action = ACTIONS.get(name)
    if action is None:
        raise AdminError("bad-request", f"unknown action {name!r}; the actions are {', '.join(ACTIONS)}")
    if query.state is not None and query.state not in action.states:
        states = ", ".join(sorted(state.name.lower() for state in action.states))
        raise AdminError("bad-request", f"{name} applies to jobs that are {states}, not {query.state.name.lower()}")
    most = min(query.limit or BULK_MOST, BULK_MOST)
    jobs = await _living(tick_loop.engine, scanner, query, most + 1, action.states)
    done = refused = 0
    loop_break = LoopBreak()
    for job in jobs[:most]:
        await loop_break.take()
        engine = tick_loop.begin_tick()
        if job.state in action.states and _is_there(engine, job) and _apply(action, engine, job):
            done += 1
        else:
            refused += 1
    return BulkReport(done, refused, len(jobs) > most)


def _apply(action: Action, engine: Engine, job: LiveJob) -> bool:
    try:
        action.method(engine, job)
    except DuplicateKeyError:
        return False
    return True


async def _living(
    engine: Engine, scanner: JobScanner, query: JobQuery, most: int, states: frozenset[JobState] | None = None
) -> list[LiveJob]:
    """The newest jobs that match and have not ended."""
    builtin_workers = engine.builtin_workers

    def matches(job: LiveJob) -> bool:
        return (states is None or job.state in states) and query.matches(job) and job.function not in builtin_workers

    jobs = await scanner.newest(matches, query.state, query.below, most)
    return [job for job in jobs if query.matches(job) and _is_there(engine, job)]


def _is_there(engine: Engine, job: LiveJob) -> bool:
    """Whether the engine still has this job object: it may have ended or been replaced meanwhile."""
    jobs = engine.dead if job.state is JobState.DEAD else engine.jobs
    return jobs.get(job.id) is job


def _total(engine: Engine, query: JobQuery) -> int | None:
    """How many jobs match in all, where the engine counts them anyway."""
    if query.state is None or query.search or query.door or query.since or query.until:
        return None
    counts: Counts | Function = Counts(engine)
    dead = len(engine.dead)
    if query.function:
        counts = engine.functions.get(query.function) or Function(query.function)
        dead = engine.dead_counts.get(query.function, 0)
    by_state = {
        JobState.SCHEDULED: counts.scheduled,
        JobState.QUEUED: counts.queued,
        JobState.RUNNING: counts.running,
        JobState.DEAD: dead,
    }
    return by_state.get(query.state)


def _view(job: LiveJob | Record) -> JobView:
    if isinstance(job, Record):
        return views.record_view(job, views.LISTED_BYTES)
    return views.job_view(job, views.LISTED_BYTES)


def _id(job: LiveJob | Record) -> int:
    return job.id
