"""Jobs by the page, newest first, and actions on many of them.

The newest is the one with the highest id. Jobs that end while others are looked at are found in the archive, which is
therefore asked last.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.errors import DuplicateKeyError, SteeringError
from geartrain.model import JobState, Record
from geartrain.runtime.records import RecordQuery
from geartrain.steering import portraits
from geartrain.steering.census import Census
from geartrain.steering.filters import OVER, JobFilter, Sieve
from geartrain.steering.rolls import Breath, Rolls
from geartrain.steering.site import Archive, Site
from geartrain.steering.views import BulkReport, JobView, Page

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


async def page(engine: Engine, rolls: Rolls, archive: Archive, wanted: JobFilter) -> Page[JobView]:
    """One page of the jobs that fit."""
    sieve = Sieve(wanted)
    living = await _living(engine, rolls, sieve, sieve.limit + 1) if sieve.state not in OVER else []
    over = await archive.newest(_query(sieve)) if sieve.state is None or sieve.state in OVER else []
    ended = {record.id for record in over}
    found: list[LiveJob | Record] = [*over, *(job for job in living if job.id not in ended)]
    found.sort(key=_id, reverse=True)
    shown = found[: sieve.limit]
    after = str(shown[-1].id) if len(found) > len(shown) else ""
    # Records of the server's own jobs are passed over: a page may be shorter for it.
    return Page(
        [_view(each) for each in shown if each.function not in engine.builtin_workers], after, _total(engine, sieve)
    )


async def bulk(engine: Engine, rolls: Rolls, site: Site, action: str, wanted: JobFilter) -> BulkReport:
    """Do something with every job that fits, up to a bound."""
    chosen = ACTIONS.get(action)
    if chosen is None:
        raise SteeringError("bad-request", f"there is no action {action!r}; there are {', '.join(ACTIONS)}")
    sieve = Sieve(wanted)
    if sieve.state is not None and sieve.state not in chosen.states:
        names = ", ".join(sorted(state.name.lower() for state in chosen.states))
        raise SteeringError("bad-request", f"{action} is for jobs that are {names}")
    most = min(wanted.limit or BULK_MOST, BULK_MOST)
    found = await _living(engine, rolls, sieve, most + 1, chosen.states)
    done = refused = 0
    breath = Breath()
    for job in found[:most]:
        await breath.take()
        engine.now = site.clock()
        if job.state in chosen.states and _is_there(engine, job) and _did(chosen, engine, job):
            done += 1
        else:
            refused += 1
        site.schedule_tick()
    return BulkReport(done, refused, len(found) > most)


def _did(action: Action, engine: Engine, job: LiveJob) -> bool:
    try:
        action.verb(engine, job)
    except DuplicateKeyError:
        return False
    return True


async def _living(
    engine: Engine, rolls: Rolls, sieve: Sieve, most: int, states: frozenset[JobState] | None = None
) -> list[LiveJob]:
    """The newest jobs that fit and are not over."""
    builtin_workers = engine.builtin_workers

    def fits(job: LiveJob) -> bool:
        return (states is None or job.state in states) and sieve.fits(job) and job.function not in builtin_workers

    found = await rolls.newest(fits, sieve.state, sieve.below, most)
    return [job for job in found if sieve.fits(job) and _is_there(engine, job)]


def _is_there(engine: Engine, job: LiveJob) -> bool:
    """Whether it is still this one, and not over or replaced."""
    home = engine.dead if job.state is JobState.DEAD else engine.jobs
    return home.get(job.id) is job


def _query(sieve: Sieve) -> RecordQuery:
    state = -1 if sieve.state is None else int(sieve.state)
    return RecordQuery(
        state, sieve.function, sieve.search, sieve.door, sieve.since, sieve.until, sieve.below, sieve.limit + 1
    )


def _total(engine: Engine, sieve: Sieve) -> int | None:
    """How many fit in all, where the engine knows that already."""
    if sieve.state is None or sieve.search or sieve.door or sieve.since or sieve.until:
        return None
    home: Census | Function = Census(engine)
    dead = len(engine.dead)
    if sieve.function:
        home = engine.functions.get(sieve.function) or Function(sieve.function)
        dead = engine.dead_of.get(sieve.function, 0)
    counts = {
        JobState.SCHEDULED: home.scheduled,
        JobState.QUEUED: home.queued,
        JobState.RUNNING: home.running,
        JobState.DEAD: dead,
    }
    return counts.get(sieve.state)


def _view(found: LiveJob | Record) -> JobView:
    if isinstance(found, Record):
        return portraits.record(found, portraits.LISTED_BYTES)
    return portraits.job(found, portraits.LISTED_BYTES)


def _id(found: LiveJob | Record) -> int:
    return found.id
