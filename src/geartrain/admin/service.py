"""Everything that operators can see and do, whichever way they come: the API, the command, or a control job.

Verbs answer with views (`views.py`) and refuse with a SteeringError. A change is in force when its verb returns, and
on disk when `TickLoop.durable` does.
"""

import heapq
import time
from collections.abc import Awaitable, Mapping
from typing import Any, Final, NamedTuple

import geartrain
from geartrain.admin import jobs, verbs, views
from geartrain.admin.counts import Counts
from geartrain.admin.events import Events, Listener
from geartrain.admin.functions import FunctionSettings
from geartrain.admin.history import KEPT, History
from geartrain.admin.jobs import JobScanner
from geartrain.admin.schedules import Schedules
from geartrain.admin.server_info import Archive, ServerInfo
from geartrain.admin.verbs import Verb
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError, DuplicateKeyError
from geartrain.job_query import JobQuery, page_position
from geartrain.model import JobState
from geartrain.runtime.tick import TickLoop

_MOST_LISTED: Final = 1000
_OLDEST_EVERY: Final = 1.0  # seconds
_OLDEST_SHARE: Final = 0.01  # of the time, at most

_ALL_JOBS: Final = JobQuery()


class _Oldest(NamedTuple):
    """The job that waits longest, as far as it is known."""

    looked_at: float
    again_at: float
    found: float


class Admin:
    """One per server, made before the jobs of before are taken over."""

    def __init__(self, tick_loop: TickLoop, server: ServerInfo, archive: Archive, kept: Mapping[str, bytes]) -> None:
        self._tick_loop = tick_loop
        self._engine = engine = tick_loop.engine
        self._server = server
        self._archive = archive
        self._started_at = engine.now
        self._settings = FunctionSettings(engine, kept, lambda name, value: engine.journal.save_value(name, value))
        self._counts = Counts(engine)
        self._scanner = JobScanner(engine)
        self._history = History(engine, engine.now)
        self._schedules = Schedules(tick_loop, kept)
        self._events = Events(engine, engine.builtin_workers)
        self._oldest = _Oldest(0.0, 0.0, 0.0)
        engine.timers += [self._history, self._schedules]

    async def call(self, verb: Verb, arguments: Mapping[str, Any]) -> Any:
        """The answer of a verb. A change is in force, and durable when `durable` returns."""
        answer = getattr(self, verb.name)(**arguments)
        return await answer if isinstance(answer, Awaitable) else answer

    # The server

    def ping(self) -> views.Ping:
        """Which server answers."""
        return views.Ping("geartrain", geartrain.__version__)

    def overview(self) -> views.Overview:
        """The whole server at a glance."""
        engine, counts, now = self._engine, self._counts, self._now()
        submitted_rate, completed_rate = self._history.rates(now)
        return views.Overview(
            now=now,
            uptime=max(now - self._started_at, 0.0),
            queued=counts.queued,
            running=counts.running,
            scheduled=counts.scheduled,
            dead=len(engine.dead),
            functions=counts.functions,
            workers=len(engine.workers),
            connections=self._server.connections(),
            submitted=counts.submitted,
            completed=counts.completed,
            failed=counts.failed,
            submitted_rate=submitted_rate,
            completed_rate=completed_rate,
            oldest=self._oldest_of_all(now) or None,
            wait=self._history.wait(),
            run=self._history.run(),
        )

    def history(self, seconds: int = 300) -> list[views.Sample]:
        """One sample for each of the last seconds, at most an hour of them; the oldest first."""
        if seconds < 1:
            raise AdminError("bad-request", "a history has at least one second")
        return self._history.history(min(seconds, KEPT))

    async def system(self) -> views.System:
        """What runs, and on what."""
        return await self._server.system()

    # Functions

    def functions(
        self, search: str = "", sort: str = "name", limit: int = 100, after: str = ""
    ) -> views.Page[views.FunctionView]:
        """The functions whose names contain a text; those with the most of what they are sorted by come first."""
        if sort not in verbs.SORTS:
            raise AdminError("bad-request", f"functions are sorted by {', '.join(verbs.SORTS)}; not by {sort!r}")
        start, limit = page_position(after), _most(limit)
        text = search.encode()
        found = [each for name, each in self._engine.functions.items() if text in name and not self._is_ours(name)]
        wanted = heapq.nsmallest(start + limit, found, key=lambda each: self._rank(each, sort))[start:]
        more = len(found) > start + limit
        shown = [views.function_view(self._engine, each) for each in wanted]
        return views.Page(shown, str(start + limit) if more else "", len(found))

    def function(self, name: bytes) -> views.FunctionView:
        """One function."""
        return views.function_view(self._engine, self._function(name))

    def pause(self, function: bytes) -> None:
        """Hand out no more jobs of a function, until it is resumed; also after a restart."""
        self._touch(function)
        self._settings.pause(function, True)

    def resume(self, function: bytes) -> None:
        """Hand out jobs of a function again."""
        self._touch(function)
        self._function(function)
        self._settings.pause(function, False)

    def limit(self, function: bytes, high: int = 0, normal: int = 0, low: int = 0) -> None:
        """How many jobs a function may have when one of that priority wants in; 0: any number.

        It is in force after a restart as well.
        """
        if min(high, normal, low) < 0:
            raise AdminError("bad-request", "a limit is not below 0")
        self._touch(function)
        self._settings.limit(function, high, normal, low)

    def drop(self, function: bytes) -> None:
        """Forget a function that has neither workers nor jobs, and what was ordered for it."""
        self._touch(function)
        self._function(function)
        if not self._engine.drop(function):
            raise AdminError("conflict", f"{_shown(function)} has workers or jobs, and cannot be dropped")
        self._settings.forget(function)

    # Jobs

    async def jobs(self, query: JobQuery = _ALL_JOBS) -> views.Page[views.JobView]:
        """The jobs that match, newest first: those that have ended as well."""
        return await jobs.list_page(self._engine, self._scanner, self._archive, query)

    async def job(self, handle: bytes) -> views.JobView:
        """One job."""
        found = self._find(handle)
        if found is not None:
            return views.job_view(found, views.SHOWN_BYTES)
        record = await self._archive.find(handle)
        if record is None:
            raise _unknown(handle)
        return views.record_view(record, views.SHOWN_BYTES)

    def view(self, job: LiveJob, result: bytes | None = None) -> views.JobView:
        """A job of the engine's; with a result, one that has just ended."""
        over = job.state in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)
        return views.job_view(job, views.SHOWN_BYTES, result, self._engine.now if over else None)

    async def payload(self, handle: bytes) -> bytes:
        """The whole payload of a job that is not over."""
        found = self._find(handle)
        if found is not None:
            return found.payload
        if await self._archive.find(handle) is None:
            raise _unknown(handle)
        raise AdminError("not-found", f"job {_shown(handle)} is over, and its payload is no longer kept")

    async def result(self, handle: bytes) -> bytes:
        """The result of a job that is over, as much of it as is kept."""
        found = self._find(handle)
        if found is not None:
            state = found.state.name.lower()
            raise AdminError("conflict", f"job {_shown(handle)} has no result: it is {state}")
        record = await self._archive.find(handle)
        if record is None:
            raise _unknown(handle)
        if not record.keeps_result:
            raise AdminError("not-found", f"the result of job {_shown(handle)} was not kept: its submitter said so")
        return record.result

    def cancel(self, handle: bytes) -> None:
        """End a job that waits or runs."""
        self._act("cancel", handle)

    def retry(self, handle: bytes) -> None:
        """Give a dead job another life."""
        self._act("retry", handle)

    def delete(self, handle: bytes) -> None:
        """Forget a dead job."""
        self._act("delete", handle)

    def hasten(self, handle: bytes) -> None:
        """Let a scheduled job run now."""
        self._act("run", handle)

    async def bulk(self, action: str, filter: JobQuery = _ALL_JOBS) -> views.BulkReport:
        """Apply an action to every job that matches, up to ten thousand per call."""
        return await jobs.act_on_all(self._tick_loop, self._scanner, action, filter)

    def postpone(
        self,
        handle: bytes = b"",
        seconds: float = 0.0,
        reason: str = "",
        function: bytes = b"",
        unique: bytes = b"",
        id: int = 0,
    ) -> None:
        """Try a job again after a while, at the wish of the worker that runs it; it is not to answer for it."""
        if not 0.0 <= seconds < 1e10:
            raise AdminError("bad-request", f"a job cannot be put off for {seconds} seconds")
        job = self._running(handle, function, unique, id)
        if not self._engine.reschedule_failed(job, self._engine.now + seconds, reason):
            raise _not_running(job)

    def bury(
        self, handle: bytes = b"", reason: str = "", function: bytes = b"", unique: bytes = b"", id: int = 0
    ) -> None:
        """Set a job aside as dead, at the wish of the worker that runs it; it is not to answer for it."""
        job = self._running(handle, function, unique, id)
        if not self._engine.mark_dead(job, reason):
            raise _not_running(job)

    # Workers

    def workers(self, search: str = "", limit: int = 100, after: str = "") -> views.Page[views.WorkerView]:
        """The workers whose name, address, door or a function contains a text, in the order in which they came."""
        last, limit = page_position(after), _most(limit)
        text = search.encode()
        found = [
            each
            for number, each in sorted(self._engine.workers.items())
            if number > last
            and (
                not text
                or text in each.name
                or text in each.peer.encode()
                or text in each.door.encode()
                or any(text in name for name in each.abilities)
            )
        ]
        shown = [views.worker_view(each) for each in found[:limit]]
        after = str(shown[-1].id) if len(found) > limit else ""
        return views.Page(shown, after, None if text else len(self._engine.workers))

    # Schedules

    def crons(self) -> list[views.ScheduleView]:
        """Every schedule."""
        return self._schedules.views()

    def cron(self, name: str) -> views.ScheduleView:
        """One schedule."""
        return self._schedules.get(name).view()

    def cron_set(
        self,
        name: str,
        expression: str,
        function: bytes,
        payload: bytes = b"",
        priority: str = "normal",
        unique: bool = False,
        timezone: str = "UTC",
    ) -> views.ScheduleView:
        """Make a schedule, or change the one of that name."""
        self._touch(function)
        return self._schedules.set(name, expression, function, payload, priority, unique, timezone).view()

    def cron_remove(self, name: str) -> None:
        """Forget a schedule; jobs that it has submitted stay."""
        self._touch()
        self._schedules.remove(name)

    def cron_run(self, name: str) -> bytes:
        """Submit a schedule's job now, besides its times; its handle."""
        self._touch()
        return self._schedules.run(name)

    def cron_pause(self, name: str) -> None:
        """Let a schedule rest."""
        self._touch()
        self._schedules.pause(name, True)

    def cron_resume(self, name: str) -> None:
        """Let a schedule go on; what it missed is not made up for."""
        self._touch()
        self._schedules.pause(name, False)

    # Listening

    def subscribe(self, listener: Listener) -> None:
        """From now on `listener` is called for every moment in the life of a job; it only takes a note of it."""
        self._events.subscribe(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """It hears no more."""
        self._events.unsubscribe(listener)

    # What the verbs share

    def _now(self) -> float:
        return self._tick_loop.begin_tick().now

    def _touch(self, function: bytes = b"") -> None:
        """Something is about to change."""
        if self._is_ours(function):
            raise AdminError("bad-request", f"{_shown(function)} is a function of the server itself")
        self._tick_loop.begin_tick()

    def _is_ours(self, function: bytes) -> bool:
        return function in self._engine.builtin_workers

    def _function(self, name: bytes) -> Function:
        found = self._engine.functions.get(name)
        if found is None:
            raise AdminError("not-found", f"there is no function {_shown(name)}")
        return found

    def _find(self, handle: bytes) -> LiveJob | None:
        return self._engine.find(handle) or self._engine.find_dead(handle)

    def _act(self, action: str, handle: bytes) -> None:
        self._touch()
        states, verb = jobs.ACTIONS[action]
        job = self._find(handle)
        if job is None:
            raise AdminError("not-found", f"no job {_shown(handle)} waits, runs or is dead")
        if job.state not in states:
            names = " or ".join(sorted(state.name.lower() for state in states))
            raise AdminError("conflict", f"job {_shown(handle)} is {job.state.name.lower()}, not {names}")
        try:
            verb(self._engine, job)
        except DuplicateKeyError as error:
            raise AdminError("conflict", str(error)) from None

    def _running(self, handle: bytes, function: bytes, unique: bytes, id: int) -> LiveJob:
        """A job by whichever name its worker's protocol has for it."""
        self._touch()
        if id:
            handle = self._engine.handle_prefix + b"%d" % id
        home = self._engine.functions.get(function)
        job = home.unique_jobs.get(unique) if home is not None and unique else None
        if job is None:
            job = self._engine.find(handle or unique)
        if job is None or (function and job.function != function):
            raise AdminError("not-found", f"no such job runs: {_shown(handle or unique)}")
        return job

    def _rank(self, function: Function, sort: str) -> tuple[float, bytes]:
        """What a function is sorted by, lowest first; then its name."""
        if sort == "oldest":
            return (function.oldest_ready_at() or float("inf"), function.name)
        if sort == "name":
            return (0.0, function.name)
        return (-getattr(function, sort), function.name)

    def _oldest_of_all(self, now: float) -> float:
        """When the job that waits longest was ready to run. There may be many functions, so it is looked for seldom."""
        if not self._oldest.looked_at <= now < self._oldest.again_at:
            began = time.perf_counter()
            ready = (function.oldest_ready_at() for function in self._engine.functions.values())
            found = min((moment for moment in ready if moment), default=0.0)
            pause = max(_OLDEST_EVERY, (time.perf_counter() - began) / _OLDEST_SHARE)
            self._oldest = _Oldest(now, now + pause, found)
        return self._oldest.found


def _unknown(handle: bytes) -> AdminError:
    return AdminError("not-found", f"there is no job {_shown(handle)}, or it was over too long ago")


def _not_running(job: LiveJob) -> AdminError:
    return AdminError("conflict", f"job {_shown(job.handle)} is {job.state.name.lower()}, and no one worker runs it")


def _shown(name: bytes) -> str:
    """For a message: nothing in it can move the cursor of a terminal."""
    return ascii(name.decode("utf-8", "replace"))[1:-1]


def _most(limit: int) -> int:
    if limit < 1:
        raise AdminError("bad-request", "a page has at least one entry")
    return min(limit, _MOST_LISTED)
