"""Verbs on jobs: pages of them, one of them, and actions on one or many."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from geartrain.admin import borrowed_jobs, parents, presentation, verbs, views
from geartrain.admin.authorization import caller, may_read
from geartrain.admin.base import AdminBase, printable
from geartrain.admin.cold_search import ColdSearch
from geartrain.admin.failed_jobs import FailedJobActions
from geartrain.admin.history import ServerCounts
from geartrain.admin.job_scan import JobScanner
from geartrain.admin.loop_break import LoopBreak, convert
from geartrain.admin.views import BulkReport, JobView, Page
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError, DuplicateKeyError
from geartrain.job_query import ENDED, STATES, JobQuery
from geartrain.model import JobState, Record, id_from_handle
from geartrain.rights import Identity
from geartrain.runtime.submitted_handle import SubmittedHandle

PAGE_MOST: Final = 1000
_PAGE_DEFAULT: Final = 100
BULK_MOST: Final = 10_000  # jobs per call
_ALL_JOBS: Final = JobQuery()
DOOR: Final = "control"  # the `door` of jobs that the verb `submit` submits
_LARGEST_TIME: Final = 1e12  # seconds


class Action(NamedTuple):
    """What a verb does to a job, whether to one or to all that match a filter."""

    states: frozenset[JobState]  # of jobs that it can be applied to
    method: Callable[[Engine, LiveJob], None]


ACTIONS: Final = {
    verb.action: Action(frozenset(STATES[state] for state in verb.states), getattr(Engine, verb.engine_method))
    for verb in verbs.VERBS.values()
    if verb.action
}


class JobVerbs(AdminBase):
    """List and show jobs, and act on them."""

    _scanner: JobScanner
    _failed_jobs: FailedJobActions

    async def submit(
        self,
        function: bytes,
        payload: bytes = b"",
        priority: str = "normal",
        unique: bytes = b"",
        run_at: float = 0.0,
        timeout: float = 0.0,
        keep_for: float = 0.0,
        expires_at: float = 0.0,
        partition: bytes = b"",
        after: str = "",
        on_failure: str = parents.CANCEL,
    ) -> bytes:
        """Submit a background job, for clients whose protocol cannot express its options; return its handle."""
        for name, value in {
            "run_at": run_at,
            "timeout": timeout,
            "keep_for": keep_for,
            "expires_at": expires_at,
        }.items():
            if not 0 <= value <= _LARGEST_TIME:
                raise AdminError("bad-request", f"{name} must be 0 to {_LARGEST_TIME:g}, not {value:g}")
        if priority not in views.PRIORITIES:
            raise AdminError("bad-request", f"unknown priority {priority!r}")
        if not function:
            raise AdminError("bad-request", "function must not be empty")
        handles = [handle.encode("utf-8", "surrogateescape") for handle in after.split()]
        packed = await self.parents(handles, on_failure, caller.get()) if handles else b""
        self._begin_change(function)
        self._engine.actor = caller.get()  # whose rights and quotas apply
        try:
            job = self._engine.submit(
                function,
                unique=unique,
                payload=payload,
                priority=views.PRIORITIES.index(priority),
                background=True,
                run_at=run_at if run_at > self._engine.now else 0.0,
                door=DOOR,
                timeout=timeout,
                keep_for=keep_for,
                expires_at=expires_at,
                partition=partition,
                after=packed,
            )
        finally:
            self._engine.actor = None
        return await self._handle_in_cluster(job)

    async def parents(self, handles: Sequence[bytes], on_failure: str, identity: Identity | None) -> bytes:
        """The jobs with these handles, to be waited for. Submit without awaiting anything else."""
        return await parents.resolve(self._engine, self._archive, handles, on_failure, identity)

    async def _handle_in_cluster(self, job: LiveJob) -> bytes:
        """The handle of a job, or that of the job of another server that has its unique key."""
        submitted = SubmittedHandle(self._engine, job)
        if job.state is JobState.RESERVING:
            await self._tick_loop.durable()
            await submitted.settled()
        return submitted.handle

    async def jobs(self, query: JobQuery = _ALL_JOBS) -> Page[JobView]:
        """One page of the jobs that match, newest first; those that have ended as well."""
        if query.places:
            raise AdminError("bad-request", "after is of a page of the whole cluster; begin again without it")
        limit = page_size(query)
        # One more than the page has, to know whether there is another page. The archive comes last: jobs that end
        # meanwhile are then found in it.
        living = await self._living(query, limit + 1) if query.state not in ENDED else []
        has_records = query.state is None or query.state in ENDED
        records = await self._archive.newest(query, limit + 1) if has_records else []
        ended = {record.id for record in records}
        jobs: list[LiveJob | Record] = [*records, *(job for job in living if job.id not in ended)]
        jobs.sort(key=lambda job: job.id, reverse=True)
        return await self._page(jobs, limit, self._total(query))

    async def live_jobs(self, query: JobQuery) -> Page[JobView]:
        """Those of a page of `jobs` that have not ended, for the pages of a cluster: all its servers have the rest."""
        limit = page_size(query)
        living = await self._living(query, limit + 1) if query.state not in ENDED else []
        return await self._page(living, limit, self._total(query))

    async def ended_jobs(self, query: JobQuery) -> Page[JobView]:
        """Those of a page of `jobs` that have ended."""
        limit = page_size(query)
        has_records = query.state is None or query.state in ENDED
        return await self._page(await self._archive.newest(query, limit + 1) if has_records else [], limit)

    async def newest_record_id(self, below: int) -> int:
        """The highest id of a job that has ended, below this one unless it is 0; 0: there is none."""
        records = await self._archive.newest(JobQuery(below=below), 1)
        return records[0].id if records else 0

    async def _page(self, jobs: Sequence[LiveJob | Record], limit: int, total: int | None = None) -> Page[JobView]:
        """A page of jobs, of which there is one more if another page follows."""
        page = jobs[:limit]
        after = str(page[-1].id) if len(jobs) > len(page) else ""
        # Jobs of built-in workers, and of functions that the caller may not read, are left out: a page may be shorter.
        items = await self._views([job for job in page if self._is_visible(job.function)], views.LISTED_BYTES)
        return Page(items, after, total)

    async def job(self, handle: bytes) -> JobView:
        """One job."""
        job = self._find(handle)
        (view,) = await self._views([job if job is not None else await self._record(handle)], views.SHOWN_BYTES)
        return view

    async def payload(self, handle: bytes) -> bytes:
        """The whole payload of a job that has not ended, or that failed and is kept whole."""
        job = self._find(handle)
        if job is not None and not job.is_cold:
            return job.payload
        if job is not None:
            read = await self._archive.cold_payloads([job], sys.maxsize)
            if job.id in read:
                return read[job.id]
        payload = await self._failed_jobs.payload(await self._record(handle))
        if payload is None:
            raise AdminError("not-found", f"job {printable(handle)} has ended; its payload is no longer kept")
        return payload

    async def result(self, handle: bytes, part: bool = False) -> bytes:
        """The result of a job that has ended; with `part`, also if only its beginning is kept."""
        job = self._find(handle)
        if job is not None:
            raise AdminError("conflict", f"job {printable(handle)} has no result: it is {_state(job)}")
        record = await self._archive.find(handle)
        if record is None:
            raise self._no_record(handle)
        if not record.keeps_result:
            raise AdminError("result-gone", f"job {printable(handle)} was submitted without keeping its result")
        result = await self._archive.result(record)
        if len(result) < record.full_size and not part:
            raise AdminError("result-cut", f"the result of job {printable(handle)} {presentation.cut_text(record)}")
        return result

    async def log(self, handle: bytes) -> bytes:
        """The log that is kept with a job; empty if there is none."""
        job = self._find(handle) or await self._record(handle)
        return await self._archive.log(job.id)

    def cancel(self, handle: bytes) -> None:
        """Cancel a job that is scheduled, queued or running."""
        self._act("cancel", handle)

    async def retry(self, handle: bytes) -> None:
        """Queue a dead or failed job again."""
        await self._act_on_kept("retry", handle)
        job = self._engine.find(handle)
        holder = await self._handle_in_cluster(job) if job is not None else handle
        if holder != handle:
            text = f"job {printable(handle)} cannot be retried: job {printable(holder)} has its unique key"
            raise AdminError("conflict", text)

    async def delete(self, handle: bytes) -> None:
        """Delete a dead or failed job."""
        await self._act_on_kept("delete", handle)

    def hasten(self, handle: bytes) -> None:
        """Run a scheduled job now."""
        self._act("run", handle)

    async def bulk(self, action: str, filter: JobQuery = _ALL_JOBS) -> BulkReport:
        """Apply an action to every job that matches, up to ten thousand per call."""
        done, refused, more = msgspec.structs.astuple(await self.bulk_living(action, filter))
        left = min(filter.limit or BULK_MOST, BULK_MOST) - done - refused
        if not more:
            failed = await self.bulk_failed(action, filter, left)
            done, refused, more = done + failed.done, refused + failed.refused, failed.more
        return BulkReport(done, refused, more)

    async def bulk_living(self, action: str, filter: JobQuery) -> BulkReport:
        """The same for jobs that the engine has."""
        if action not in ACTIONS:
            raise AdminError("bad-request", f"unknown action {action!r}; the actions are {', '.join(ACTIONS)}")
        states, method = ACTIONS[action]
        if filter.state is not None and filter.state not in states:
            words = f"{_names(states, ', ')}, not {filter.state.name.lower()}"
            raise AdminError("bad-request", f"{action} applies to jobs that are {words}")
        most = min(filter.limit or BULK_MOST, BULK_MOST)
        jobs = await self._living(filter, most + 1, states) if filter.state not in ENDED else []
        done = refused = 0
        loop_break = LoopBreak()
        for job in jobs[:most]:
            await loop_break.take()
            engine = self._tick_loop.begin_tick()
            if job.state in states and _is_there(engine, job) and _apply(method, engine, job):
                done += 1
            else:
                refused += 1
        return BulkReport(done, refused, len(jobs) > most)

    async def bulk_failed(self, action: str, filter: JobQuery, most: int) -> BulkReport:
        """The same for jobs that failed, which only the store has."""
        if JobState.FAILED not in ACTIONS[action].states or filter.state not in (None, JobState.FAILED):
            return BulkReport(0, 0, False)
        failed = dataclasses.replace(filter, state=JobState.FAILED)
        return BulkReport(*await self._failed_jobs.act_on_all(action, failed, most))

    async def failed_handles(self, filter: JobQuery, most: int) -> list[tuple[int, bytes]]:
        """Ids and handles of failed jobs that match, the newest of them."""
        if filter.state not in (None, JobState.FAILED):
            return []
        records = await self._archive.newest(dataclasses.replace(filter, state=JobState.FAILED), most)
        return [(record.id, record.handle) for record in records]

    async def retry_failed(self, handles: list[bytes]) -> int:
        """Queue failed jobs again whose home this server is; return how many were."""
        return await self._failed_jobs.retry_named(handles)

    def postpone(
        self,
        handle: bytes = b"",
        seconds: float = 0.0,
        reason: str = "",
        function: bytes = b"",
        unique: bytes = b"",
        id: int = 0,
    ) -> None:
        """Put a running job back, to run again later, on behalf of its worker. Answers of the worker are ignored."""
        if not 0.0 <= seconds < 1e10:
            raise AdminError("bad-request", f"seconds must be 0 or more, and below 1e10: {seconds}")
        job = self._running(handle, function, unique, id)
        if not self._engine.reschedule_failed(job, self._engine.now + seconds, reason):
            raise _not_running(job)

    def bury(
        self, handle: bytes = b"", reason: str = "", function: bytes = b"", unique: bytes = b"", id: int = 0
    ) -> None:
        """Mark a running job as dead on behalf of its worker. Answers of the worker are ignored."""
        job = self._running(handle, function, unique, id)
        if not self._engine.mark_dead(job, reason):
            raise _not_running(job)

    def add_log(
        self, lines: bytes, handle: bytes = b"", function: bytes = b"", unique: bytes = b"", id: int = 0
    ) -> None:
        """Add lines to the log of a running job on behalf of its worker."""
        job = self._running(handle, function, unique, id)
        if job.state is not JobState.RUNNING:
            raise _not_running(job)
        if not job.background:
            raise AdminError("conflict", f"job {printable(job.handle)} is a foreground job, and nothing is kept of it")
        if lines:
            self._engine.journal.add_log(job.id, lines if lines.endswith(b"\n") else lines + b"\n")

    async def function_of_job(self, arguments: Mapping[str, Any]) -> bytes:
        """The function of the job that the arguments of a verb name."""
        handle = arguments.get("handle") or b""
        if not handle:  # a worker names its job by the function and a key or an id
            return bytes(arguments.get("function") or b"")
        job = self._find(handle)
        return job.function if job is not None else (await self._record(handle)).function

    def _is_visible(self, function: bytes) -> bool:
        return not self._is_builtin(function) and may_read(function)

    def _find(self, handle: bytes) -> LiveJob | None:
        return self._engine.find(handle) or self._engine.find_dead(handle)

    async def _record(self, handle: bytes) -> Record:
        record = await self._archive.find(handle)
        if record is None:
            raise AdminError("not-found", f"no job {printable(handle)}; records of ended jobs are kept for a while")
        return record

    def _no_record(self, handle: bytes) -> AdminError:
        """Why there is no record: the job never was, or it has ended and its record was removed."""
        id = id_from_handle(handle)
        if 0 < id < self._engine.next_id and handle.startswith(self._engine.handle_prefix):
            text = f"the record of job {printable(handle)} is no longer kept, or it was a foreground job"
            return AdminError("result-gone", text)
        return AdminError("not-found", f"no job {printable(handle)}")

    async def _act_on_kept(self, action: str, handle: bytes) -> None:
        """Act on a dead job, which the engine has, or on a failed one, which only the store has."""
        if self._find(handle) is None:
            await self._failed_jobs.act(action, handle)
        else:
            self._act(action, handle)

    async def _views(self, jobs: Sequence[LiveJob | Record], longest: int) -> list[JobView]:
        """The views of jobs, those that failed with their payloads."""
        payloads = await self._archive.payloads([job for job in jobs if isinstance(job, Record)], longest)
        cold = await self._cold_payloads([job for job in jobs if isinstance(job, LiveJob)], longest)

        def view_of(job: LiveJob | Record) -> JobView:
            if isinstance(job, Record):
                view = presentation.record_view(job, longest, payloads.get(job.id))
            else:
                view = presentation.job_view(job, longest, engine=self._engine, cold_payload=cold.get(job.id))
            removed_at = self._removed_at(job)
            return view if removed_at is None else msgspec.structs.replace(view, removed_at=removed_at)

        return await convert(jobs, view_of)

    async def _cold_payloads(self, jobs: Sequence[LiveJob], longest: int) -> dict[int, bytes]:
        """The payloads of those that are cold, by id; without those that could not be read."""
        cold = [job for job in jobs if job.is_cold]
        return await self._archive.cold_payloads(cold, longest) if cold else {}

    def _removed_at(self, job: LiveJob | Record) -> float | None:
        """When a job is removed, unless limits of number or size remove it earlier."""
        seconds = self._server.kept_seconds(JobState(job.state))
        if isinstance(job, Record):
            if job.remove_at:  # of a function with a setting of its own
                return job.remove_at
            return None if seconds is None else max(job.finished_at + seconds, job.keep_until)
        if seconds is None or not job.failed_attempts:
            return None
        return job.failed_attempts[-1].ended_at + seconds

    def _act(self, action: str, handle: bytes) -> None:
        self._begin_change()
        states, method = ACTIONS[action]
        job = self._find(handle)
        if job is None:
            raise AdminError("not-found", f"no job {printable(handle)} that is scheduled, queued, running or dead")
        if job.state not in states:
            words = f"{_state(job)}, not {_names(states, ' or ')}"
            raise AdminError("conflict", f"job {printable(handle)} is {words}")
        try:
            method(self._engine, job)
        except DuplicateKeyError as error:
            raise AdminError("conflict", str(error)) from None

    def _running(self, handle: bytes, function: bytes, unique: bytes, id: int) -> LiveJob:
        """A job by the name that the protocol of its worker has for it."""
        self._begin_change()
        if id:
            handle = self._engine.handle_prefix + b"%d" % id
        job = self._engine.unique_jobs.get(function, unique) if unique else None
        if job is None:
            job = self._engine.find(handle or unique)
        if job is None or (function and job.function != function):
            raise AdminError("not-found", f"no running job {printable(handle or unique)}")
        return job

    async def _living(self, query: JobQuery, most: int, states: frozenset[JobState] | None = None) -> list[LiveJob]:
        """The newest jobs that match and have not ended."""
        builtin_workers, borrowed = self._engine.builtin_workers, self._engine.borrowed
        search = ColdSearch(query, self._archive)

        def matches(job: LiveJob) -> bool:
            return (
                (states is None or job.state in states)
                and search.matches(job)
                and job.function not in builtin_workers
                and job.id not in borrowed
            )

        prepare = search.read if query.search and self._engine.payloads.cold_jobs else None
        jobs = await self._scanner.newest(matches, query.state, query.below, most, prepare)
        return [job for job in jobs if search.matches(job) and _is_there(self._engine, job)]

    def _total(self, query: JobQuery) -> int | None:
        """How many jobs match in all, where the engine counts them anyway."""
        if query.state is None or query.search or query.door or query.since or query.until:
            return None
        engine = self._engine
        counts: ServerCounts | Function = ServerCounts(engine)
        dead = len(engine.dead)
        borrowed = borrowed_jobs.NONE
        if query.function:
            borrowed = borrowed_jobs.by_function(engine).get(query.function, borrowed)
            counts = engine.functions.get(query.function) or Function(query.function)
            dead = engine.dead_counts.get(query.function, 0)
        by_state = {
            JobState.SCHEDULED: counts.scheduled,
            JobState.BLOCKED: counts.blocked,
            JobState.QUEUED: counts.queued - borrowed.queued,
            JobState.RUNNING: counts.running - borrowed.running,
            JobState.DEAD: dead,
        }
        return by_state.get(query.state)


def page_size(query: JobQuery) -> int:
    """How many jobs a page has."""
    return min(query.limit or _PAGE_DEFAULT, PAGE_MOST)


def _apply(method: Callable[[Engine, LiveJob], None], engine: Engine, job: LiveJob) -> bool:
    try:
        method(engine, job)
    except DuplicateKeyError:
        return False
    return True


def _is_there(engine: Engine, job: LiveJob) -> bool:
    """Whether the engine still has this job object: it may have ended or been replaced meanwhile."""
    jobs = engine.dead if job.state is JobState.DEAD else engine.jobs
    return jobs.get(job.id) is job


def _not_running(job: LiveJob) -> AdminError:
    return AdminError("conflict", f"job {printable(job.handle)} is {_state(job)}, not running on one worker")


def _state(job: LiveJob) -> str:
    return job.state.name.lower()


def _names(states: frozenset[JobState], separator: str) -> str:
    return separator.join(sorted(state.name.lower() for state in states))
