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

import msgspec

from geartrain.admin import views
from geartrain.admin.counts import Counts
from geartrain.admin.server_info import Archive
from geartrain.admin.views import BulkReport, JobView, Page
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable
from geartrain.errors import AdminError, DuplicateKeyError
from geartrain.model import JobState, Record
from geartrain.runtime.records import RecordQuery
from geartrain.runtime.tick import TickLoop

STATES: Final = {state.name.lower(): state for state in JobState}
OVER: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})
MOST_LISTED: Final = 1000
_USUALLY_LISTED: Final = 100


class JobQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs that fit everything that is set. Times are those of the end, or of the submission if it is not over."""

    state: str = ""
    function: bytes = b""
    search: str = ""  # part of a handle, a function, a unique key, or of the payload while there is one
    door: str = ""
    since: float = 0.0
    until: float = 0.0  # before; 0: up to now
    limit: int = 0  # 0: as many as is usual
    after: str = ""  # what the page before gave


class JobMatcher:
    """A filter that was found to make sense, ready to be asked a million times."""

    def __init__(self, wanted: JobQuery) -> None:
        if wanted.state and wanted.state not in STATES:
            raise AdminError("bad-request", f"there is no state {wanted.state!r}; there are {', '.join(STATES)}")
        if wanted.after and not (wanted.after.isascii() and wanted.after.isdigit()):
            raise AdminError("bad-request", "`after` is what the page before gave")
        if wanted.limit < 0:
            raise AdminError("bad-request", "a limit is not below 0")
        self.state = STATES[wanted.state] if wanted.state else None
        self.function = wanted.function
        self.search = wanted.search.encode()
        self.door = wanted.door
        self.since = wanted.since
        self.until = wanted.until
        self.below = int(wanted.after) if wanted.after else 0
        self.limit = min(wanted.limit or _USUALLY_LISTED, MOST_LISTED)
        # Most lists are asked for with none of these.
        self.open = not (self.function or self.search or self.door or self.since or self.until)

    def fits(self, job: LiveJob) -> bool:
        """Whether a job that is not over is meant."""
        if (self.below and job.id >= self.below) or (self.state is not None and job.state is not self.state):
            return False
        if self.open:
            return True
        return (
            (not self.function or job.function == self.function)
            and (not self.door or job.door == self.door)
            and job.submitted_at >= self.since
            and (not self.until or job.submitted_at < self.until)
            and (not self.search or self._found(job))
        )

    def _found(self, job: LiveJob) -> bool:
        text = self.search
        return text in job.handle or text in job.unique or text in job.function or text in job.payload


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
_WAITING: Final = frozenset({JobState.SCHEDULED, JobState.QUEUED, JobState.RUNNING})


class Action(NamedTuple):
    """What can be done with many jobs at once."""

    states: frozenset[JobState]  # of jobs for which it makes sense
    verb: Callable[[Engine, LiveJob], None]


ACTIONS: Final = {
    "cancel": Action(_WAITING, Engine.cancel),
    "retry": Action(frozenset({JobState.DEAD}), Engine.retry),
    "delete": Action(frozenset({JobState.DEAD}), Engine.delete),
    "run": Action(frozenset({JobState.SCHEDULED}), Engine.run_now),
}


async def list_page(engine: Engine, scanner: JobScanner, archive: Archive, wanted: JobQuery) -> Page[JobView]:
    """One page of the jobs that fit."""
    matcher = JobMatcher(wanted)
    living = await _living(engine, scanner, matcher, matcher.limit + 1) if matcher.state not in OVER else []
    over = await archive.newest(_query(matcher)) if matcher.state is None or matcher.state in OVER else []
    ended = {record.id for record in over}
    found: list[LiveJob | Record] = [*over, *(job for job in living if job.id not in ended)]
    found.sort(key=_id, reverse=True)
    shown = found[: matcher.limit]
    after = str(shown[-1].id) if len(found) > len(shown) else ""
    # Records of the server's own jobs are passed over: a page may be shorter for it.
    return Page(
        [_view(each) for each in shown if each.function not in engine.builtin_workers], after, _total(engine, matcher)
    )


async def act_on_all(tick_loop: TickLoop, scanner: JobScanner, action: str, wanted: JobQuery) -> BulkReport:
    """Do something with every job that fits, up to a bound."""
    chosen = ACTIONS.get(action)
    if chosen is None:
        raise AdminError("bad-request", f"there is no action {action!r}; there are {', '.join(ACTIONS)}")
    matcher = JobMatcher(wanted)
    if matcher.state is not None and matcher.state not in chosen.states:
        names = ", ".join(sorted(state.name.lower() for state in chosen.states))
        raise AdminError("bad-request", f"{action} is for jobs that are {names}")
    most = min(wanted.limit or BULK_MOST, BULK_MOST)
    found = await _living(tick_loop.engine, scanner, matcher, most + 1, chosen.states)
    done = refused = 0
    loop_break = LoopBreak()
    for job in found[:most]:
        await loop_break.take()
        engine = tick_loop.begin_tick()
        if job.state in chosen.states and _is_there(engine, job) and _did(chosen, engine, job):
            done += 1
        else:
            refused += 1
    return BulkReport(done, refused, len(found) > most)


def _did(action: Action, engine: Engine, job: LiveJob) -> bool:
    try:
        action.verb(engine, job)
    except DuplicateKeyError:
        return False
    return True


async def _living(
    engine: Engine, scanner: JobScanner, matcher: JobMatcher, most: int, states: frozenset[JobState] | None = None
) -> list[LiveJob]:
    """The newest jobs that fit and are not over."""
    builtin_workers = engine.builtin_workers

    def fits(job: LiveJob) -> bool:
        return (states is None or job.state in states) and matcher.fits(job) and job.function not in builtin_workers

    found = await scanner.newest(fits, matcher.state, matcher.below, most)
    return [job for job in found if matcher.fits(job) and _is_there(engine, job)]


def _is_there(engine: Engine, job: LiveJob) -> bool:
    """Whether it is still this one, and not over or replaced."""
    home = engine.dead if job.state is JobState.DEAD else engine.jobs
    return home.get(job.id) is job


def _query(matcher: JobMatcher) -> RecordQuery:
    state = -1 if matcher.state is None else int(matcher.state)
    return RecordQuery(
        state,
        matcher.function,
        matcher.search,
        matcher.door,
        matcher.since,
        matcher.until,
        matcher.below,
        matcher.limit + 1,
    )


def _total(engine: Engine, matcher: JobMatcher) -> int | None:
    """How many fit in all, where the engine knows that already."""
    if matcher.state is None or matcher.search or matcher.door or matcher.since or matcher.until:
        return None
    home: Counts | Function = Counts(engine)
    dead = len(engine.dead)
    if matcher.function:
        home = engine.functions.get(matcher.function) or Function(matcher.function)
        dead = engine.dead_of.get(matcher.function, 0)
    counts = {
        JobState.SCHEDULED: home.scheduled,
        JobState.QUEUED: home.queued,
        JobState.RUNNING: home.running,
        JobState.DEAD: dead,
    }
    return counts.get(matcher.state)


def _view(found: LiveJob | Record) -> JobView:
    if isinstance(found, Record):
        return views.record_view(found, views.LISTED_BYTES)
    return views.job_view(found, views.LISTED_BYTES)


def _id(found: LiveJob | Record) -> int:
    return found.id
