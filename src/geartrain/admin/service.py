"""Admin: everything that operators see and do, for the HTTP API, the command line and the control function.

Verbs return views (`views.py`) and raise an AdminError where they cannot be carried out. A change is in force when its
verb returns, and durable when `TickLoop.durable` returns.
"""

import dataclasses
import time
from collections.abc import Awaitable, Mapping
from typing import Any, Final, NamedTuple

import geartrain
from geartrain import audit
from geartrain.admin import authorization, presentation, views
from geartrain.admin.base import ServerInfo, page_limit
from geartrain.admin.cluster import ClusterVerbs
from geartrain.admin.cluster_calls import ClusterCall, VerbAnswer
from geartrain.admin.cluster_views import MERGES
from geartrain.admin.dump_verbs import DumpVerbs
from geartrain.admin.events import JobEvents
from geartrain.admin.failed_jobs import FailedJobActions
from geartrain.admin.failure_groups import FailureVerbs
from geartrain.admin.function_history import FunctionHistory
from geartrain.admin.functions import FunctionSettings, FunctionVerbs
from geartrain.admin.history import KEPT, History, ServerCounts
from geartrain.admin.job_names import JobNameVerbs
from geartrain.admin.job_scan import JobScanner
from geartrain.admin.loop_break import convert, select
from geartrain.admin.other_admins import OtherAdmins
from geartrain.admin.schedule_verbs import ScheduleVerbs
from geartrain.admin.schedules import Schedules
from geartrain.admin.verbs import ADMIN, EVERYBODY, HERE, HOME, LOCAL, Verb
from geartrain.admin.workflow_admin import WorkflowAdmin
from geartrain.audit import AuditEntry, AuditQuery, Peer
from geartrain.engine.worker import Worker
from geartrain.errors import AdminError, InvalidNameError, LimitError, SettingsError
from geartrain.job_query import JobQuery, page_position
from geartrain.rights import Identity
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop

_OLDEST_SECONDS: Final = 1.0  # between two searches, at least
_OLDEST_SHARE: Final = 0.01  # of the time that searches may take, at most


class _OldestJob(NamedTuple):
    """The result of the last search for the queued job that has been ready for longest."""

    searched_at: float
    search_again_at: float
    ready_at: float


class Admin(FunctionVerbs, FailureVerbs, JobNameVerbs, WorkflowAdmin, ScheduleVerbs, DumpVerbs, ClusterVerbs):
    """One per server, created before the jobs of the last run are restored."""

    def __init__(
        self, tick_loop: TickLoop, server: ServerInfo, archive: RecordArchive, saved: Mapping[str, bytes]
    ) -> None:
        super().__init__(tick_loop, server, archive)
        engine = self._engine
        self.events = JobEvents(engine, engine.builtin_workers)
        self._started_at = engine.now
        self._unused_values: dict[str, bytes] = {}
        self._settings = FunctionSettings(
            engine, saved, lambda name, value: engine.journal.save_value(name, value), tick_loop.values
        )
        self._counts = ServerCounts(engine)
        self._scanner = JobScanner(engine)
        self._failed_jobs = FailedJobActions(tick_loop, archive)
        self._function_history = FunctionHistory(engine)
        self._history = History(engine, engine.now, self._function_history)
        self._schedules = Schedules(tick_loop, saved)
        self.value_loaders = {"order": self._settings.load, "cron": self._schedules.load}
        self._oldest = _OldestJob(0.0, 0.0, 0.0)
        self.others: OtherAdmins | None = None  # of a cluster; set when there are links to them
        engine.timers += [self._history, self._schedules]

    async def call(
        self, verb: Verb, arguments: Mapping[str, Any], identity: Identity | None = None, peer: Peer | None = None
    ) -> Any:
        """The answer of a verb of the table to a peer with this identity; None: with all rights.

        The audit log gets an entry about operators' verbs that change something, and about all that are refused.
        """
        return (await self.ask(verb, arguments, identity, peer)).value

    async def ask(
        self, verb: Verb, arguments: Mapping[str, Any], identity: Identity | None = None, peer: Peer | None = None
    ) -> VerbAnswer:
        """The same, with the names of servers that have not answered, where several of a cluster are asked."""
        is_local = arguments.get(LOCAL.name, False)
        arguments = {name: value for name, value in arguments.items() if name != LOCAL.name}
        await self.authorize(verb, arguments, identity, peer)
        audited = verb.changes and ADMIN in verb.scopes
        try:
            answer = await self._answer(verb, arguments, identity, is_local)
        except AdminError as error:
            if audited:
                self._record_call(verb, arguments, audit.FAILED, identity, peer, error.text)
            raise
        if audited:
            self._record_call(verb, arguments, audit.OK, identity, peer)
        return answer

    async def authorize(
        self, verb: Verb, arguments: Mapping[str, Any], identity: Identity | None, peer: Peer | None
    ) -> None:
        """Raise an AdminError unless the identity may call the verb with these arguments."""
        if identity is None:
            return
        try:
            await authorization.check(self, verb, arguments, identity)
        except AdminError as error:
            if error.kind == "forbidden":
                self._record_call(verb, arguments, audit.REFUSED, identity, peer, error.text)
            raise

    async def _answer(
        self, verb: Verb, arguments: dict[str, Any], identity: Identity | None, local: bool
    ) -> VerbAnswer:
        """The answer of this server, or of those of the cluster that the table of verbs names."""
        if local or verb.place == HERE or self.others is None or self.is_alone:
            return VerbAnswer(await self.answer(verb.name, arguments, identity), [])
        call = ClusterCall(self, self.others, identity)
        if verb.place == EVERYBODY:
            value = await MERGES[verb.name](call, arguments)
        elif verb.place == HOME:
            value = await call.at_home(verb, arguments)
        else:
            value = await call.everywhere_applied(verb, arguments)
        return VerbAnswer(value, sorted(set(call.unanswered)))

    @property
    def is_alone(self) -> bool:
        """Whether this server is in no cluster, or the only one of it."""
        return self.others is None or not self.others.names()

    def is_elsewhere(self, arguments: Mapping[str, Any]) -> bool:
        """Whether another server of the cluster may be the home of the job that the arguments of a verb name."""
        return self.others is not None and not self.is_alone and not self.has_job(arguments, self.others.owns)

    async def answer(self, method: str, arguments: Mapping[str, Any], identity: Identity | None = None) -> Any:
        """What a method of this class returns to a caller, whose right to ask was checked."""
        reset = authorization.caller.set(identity)
        try:
            answer = getattr(self, method)(**arguments)
            return await answer if isinstance(answer, Awaitable) else answer
        except InvalidNameError as error:
            raise AdminError("bad-request", str(error)) from None
        except LimitError as error:
            raise AdminError("conflict", str(error)) from None
        finally:
            authorization.caller.reset(reset)

    async def function_of_job(self, arguments: Mapping[str, Any]) -> bytes:
        """The function of the job that the arguments of a verb name, whichever server of the cluster has it."""
        try:
            return await super().function_of_job(arguments)
        except AdminError as error:
            if error.kind != "not-found" or self.others is None or self.is_alone:
                raise
        parts = await ClusterCall(self, self.others, None).gather(
            "function_of_named_job", {"arguments": dict(arguments)}
        )
        return bytes(parts[0].value)

    def _record_call(
        self,
        verb: Verb,
        arguments: Mapping[str, Any],
        outcome: str,
        identity: Identity | None,
        peer: Peer | None,
        why: str = "",
    ) -> None:
        if self._engine.audit is not None:
            public = _public(verb, arguments)
            self._engine.audit.record(verb.name, outcome, identity=identity, peer=peer, arguments=public, why=why)

    def users(self) -> list[views.UserView]:
        """Every user, with its rights, and what it has of its quota."""
        return self._server.users()

    async def audit(
        self,
        since: float = 0.0,
        until: float = 0.0,
        who: str = "",
        verb: str = "",
        refused: bool = False,
        limit: int = 100,
        after: str = "",
    ) -> views.Page[AuditEntry]:
        """Entries of the audit log, the newest first."""
        if self._engine.audit is None:
            raise AdminError("unsupported", "this server has no audit log")
        query = AuditQuery(since, until, who, verb, refused, page_limit(limit), page_position(after))
        try:
            page = await self._engine.audit.search(query)
        except OSError as error:
            raise AdminError("conflict", f"the audit file cannot be read: {error.strerror}") from None
        return views.Page(page.entries, str(page.after) if page.after else "")

    def ping(self) -> views.Ping:
        """Which server answers."""
        return views.Ping("geartrain", geartrain.__version__)

    def overview(self) -> views.Overview:
        """ServerCounts, rates and latencies of the whole server."""
        engine, counts = self._tick_loop.begin_tick(), self._counts
        now = engine.now
        submitted_rate, completed_rate = self._history.rates(now)
        return views.Overview(
            now=now,
            uptime=max(now - self._started_at, 0.0),
            queued=counts.queued,
            running=counts.running,
            scheduled=counts.scheduled,
            blocked=counts.blocked,
            dead=len(engine.dead),
            queued_bytes=engine.queued_bytes,
            functions=counts.functions,
            workers=len(engine.workers),
            connections=self._server.connections(),
            submitted=counts.submitted,
            completed=counts.completed,
            failed=counts.failed,
            submitted_rate=submitted_rate,
            completed_rate=completed_rate,
            oldest=self._oldest_ready_at(now) or None,
            wait=self._history.wait(),
            run=self._history.run(),
            servers=1 if self.others is None else 1 + len(self.others.names()),
        )

    def history(self, seconds: int = 300) -> list[views.Sample]:
        """One sample per second, oldest first, at most an hour of them."""
        if seconds < 1:
            raise AdminError("bad-request", f"seconds must be at least 1: {seconds}")
        return self._history.history(min(seconds, KEPT))

    async def system(self) -> views.System:
        """Version, platform, doors and store of the server."""
        return await self._server.system()

    def reload(self) -> views.ReloadView:
        """Read users, tokens and certificates again, reopen the log, and close connections of users that changed."""
        try:
            return self._server.reload(authorization.caller.get())
        except SettingsError as error:
            raise AdminError("conflict", str(error)) from None

    async def workers(self, search: str = "", limit: int = 100, after: str = "") -> views.Page[views.WorkerView]:
        """The workers with `search` in their name, address, door or a function, in the order of their connection."""
        last, limit = page_position(after), page_limit(limit)
        text = search.encode()
        engine_workers = self._engine.workers
        later = [engine_workers[number] for number in sorted(engine_workers) if number > last]

        def matches(worker: Worker) -> bool:
            return (not text or _has_text(worker, text)) and _is_visible(worker)

        workers = await select(later, matches, limit + 1)
        items = await convert(workers[:limit], presentation.worker_view)
        after = str(items[-1].id) if len(workers) > limit else ""
        everything = not text and authorization.caller.get() is None
        return views.Page(items, after, len(self._engine.workers) if everything else None)

    def _oldest_ready_at(self, now: float) -> float:
        """When the queued job that has been ready for longest became ready; 0 if none is queued.

        The search visits every function, so its result is used for a second, or longer if it is slow.
        """
        if not self._oldest.searched_at <= now < self._oldest.search_again_at:
            began = time.perf_counter()
            times = (function.oldest_ready_at() for function in self._engine.functions.values())
            ready_at = min((moment for moment in times if moment), default=0.0)
            pause = max(_OLDEST_SECONDS, (time.perf_counter() - began) / _OLDEST_SHARE)
            self._oldest = _OldestJob(now, now + pause, ready_at)
        return self._oldest.ready_at


def _public(verb: Verb, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for the audit log: without payloads and secrets, and without what was not sent."""
    private = {argument.name for argument in verb.arguments if argument.private}
    public: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, JobQuery):
            public[name] = _set_fields(value)
        elif name not in private and value not in (None, "", b""):
            public[name] = value
    return public


def _set_fields(query: JobQuery) -> dict[str, Any]:
    values = {field.name: getattr(query, field.name) for field in dataclasses.fields(query) if field.init}
    if query.state is not None:
        values["state"] = query.state.name.lower()
    return {name: value for name, value in values.items() if value}


def _is_visible(worker: Worker) -> bool:
    """Whether the caller may read one of the worker's functions at least."""
    return authorization.caller.get() is None or any(map(authorization.may_read, worker.abilities))


def _has_text(worker: Worker, text: bytes) -> bool:
    return (
        text in worker.name
        or text in worker.peer.encode()
        or text in worker.door.encode()
        or any(text in name for name in worker.abilities)
    )
