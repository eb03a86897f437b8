"""The control function, `geartrain.control`: the server executes its jobs itself, whichever protocol submits them.

The payload is a JSON object with the name of a verb and its arguments, `{"do": "pause", "function": "reverse"}`. The
job always completes, with `{"answer": ...}` or `{"error": {"kind": ..., "text": ...}}`. If other servers of a cluster
were asked, and some have not answered, their names are beside it, in `unanswered`. Bytes are written as in views: as
a string, or as `{"base64": "..."}`. The verbs are those of `admin/verbs`.

The function exists only while it has jobs. It does not appear in lists of functions and workers, no worker can
register it, and its jobs are not counted.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from geartrain import jsonbytes
from geartrain.admin import verbs
from geartrain.admin.base import method_arguments
from geartrain.admin.events import Tail, Tails
from geartrain.admin.job_follow import follow_to_result
from geartrain.admin.job_watch import STOPPING, JobReports, JobWatches
from geartrain.admin.service import Admin
from geartrain.admin.verbs import Verb
from geartrain.admin.views import Problem
from geartrain.admin.workflow_views import WorkflowMember
from geartrain.audit import Peer
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RUNNING
from geartrain.engine.worker import BuiltinWorker
from geartrain.errors import AdminError, GeartrainError
from geartrain.job_query import JobQuery
from geartrain.jsonbytes import JsonBytes
from geartrain.rights import Identity
from geartrain.runtime.tick import TickLoop

FUNCTION: Final = b"geartrain.control"

_log = logging.getLogger("geartrain.control")


def _bytes(value: Any) -> bytes:
    try:
        return jsonbytes.decode(msgspec.convert(value, JsonBytes))
    except msgspec.ValidationError:
        raise AdminError("bad-request", 'must be a string, or {"base64": "..."} for bytes that are not UTF-8') from None


def _plain(kind: Any) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise AdminError("bad-request", str(error)) from None

    return read


def _filter(value: Any) -> JobQuery:
    names = [argument.name for argument in verbs.FILTER_ARGUMENTS]
    if not isinstance(value, dict) or not value.keys() <= {*names, "limit", "after"}:
        raise AdminError("bad-request", f"must be an object with any of {', '.join(names)}")
    return JobQuery.parse(**_values(verbs.VERBS["jobs"], value))


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    verbs.TEXT: _plain(str),
    verbs.BYTES: _bytes,
    verbs.INTEGER: _plain(int),
    verbs.NUMBER: _plain(float),
    verbs.BOOLEAN: _plain(bool),
    verbs.TEXTS: _plain(list[str]),
    verbs.MEMBERS: _plain(list[WorkflowMember]),
    verbs.FILTER: _filter,
}


class ControlWorker(BuiltinWorker):
    """The built-in worker of the control function."""

    __slots__ = ("_admin", "_engine", "_is_resting", "_tails", "_tasks", "_tick_loop", "_verbs", "_waiting", "_watches")

    def __init__(self, tick_loop: TickLoop, admin: Admin, table: Mapping[str, Verb] = verbs.VERBS) -> None:
        super().__init__("control", b"geartrain")
        self.number = -1  # no list of workers shows it
        self._tick_loop = tick_loop
        self._engine = engine = tick_loop.engine
        self._admin = admin
        self._verbs = table
        self._tails = Tails(engine, admin.events, self._finish)
        self._watches = JobWatches(engine, self._finish_soon)
        # Claimed, but not started; and for whom.
        self._waiting: list[tuple[LiveJob, Identity | None, Peer | None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_resting = False  # the server stops
        engine.builtin_workers[FUNCTION] = self

    def activate(self) -> None:
        """Register the function, until it has no jobs. The engine calls this when a client uses its name."""
        self._engine.register(self, FUNCTION)
        self._engine.sleep(self)
        self._tick_loop.loop.call_soon(self._work)

    def wake(self) -> None:
        """Claim all jobs, and execute them in the next iteration: their clients must receive the handles first."""
        while (job := self._engine.claim(self)) is not None:
            self._engine.wait_times.remove(self._engine.now - max(job.run_at, job.submitted_at))
            self._waiting.append((job, self._engine.actor, self._engine.peer))  # that is submitting it now
        self._engine.sleep(self)
        if self._waiting:
            self._tick_loop.loop.call_soon(self._work)

    def rest(self) -> None:
        """Complete the tails and watches: the server stops."""
        self._is_resting = True
        self._tails.end()
        self._watches.end()

    async def close(self) -> None:
        """Complete the tails and watches, and cancel all other jobs."""
        self.rest()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _work(self) -> None:
        self._tick_loop.begin_tick()
        waiting, self._waiting = self._waiting, []
        for job, identity, peer in waiting:
            task = asyncio.ensure_future(self._execute(job, identity, peer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._unregister_if_unused()

    def _unregister_if_unused(self) -> None:
        function = self._engine.functions.get(FUNCTION)
        if function is not None and not function.total:
            self._engine.remove_worker(self)
            self._engine.drop(FUNCTION)

    async def _execute(self, job: LiveJob, identity: Identity | None, peer: Peer | None) -> None:
        try:
            verb, arguments = self._parse(job.payload)
            if verb.streams:
                await self._admin.authorize(verb, arguments, identity, peer)
                await self._stream(verb, job, identity, arguments)
                return
            result = msgspec.json.encode(await self._call(verb, arguments, identity, peer))
        except AdminError as error:
            result = msgspec.json.encode({"error": Problem(error.kind, error.text)})
        except GeartrainError as error:
            result = msgspec.json.encode({"error": Problem("unavailable", str(error))})
        except Exception:  # the client must get an answer in any case
            _log.exception("control job failed")
            result = msgspec.json.encode({"error": Problem("unavailable", "internal error; see the server's log")})
        self._finish(job, result)

    async def _stream(self, verb: Verb, job: LiveJob, identity: Identity | None, arguments: dict[str, Any]) -> None:
        """Run a verb that goes on until its client leaves, or until the job that it watches has ended."""
        if verb.name == "tail":
            self._tails.add(Tail(job, identity, **arguments))
            return
        if self._admin.is_elsewhere(arguments):
            await self._follow(job, arguments)
            return
        watched = await self._admin.watched(**arguments)
        if isinstance(watched, LiveJob):
            self._tick_loop.begin_tick()
            self._watches.add(job, watched)
        else:
            self._finish(job, msgspec.json.encode({"answer": watched}))

    async def _follow(self, job: LiveJob, arguments: dict[str, Any]) -> None:
        """Run a watch of a job of another server."""

        def wanted() -> bool:
            return bool(job.watchers) and not self._is_resting

        answer = await follow_to_result(self._admin, arguments, JobReports(self._engine, job), wanted)
        self._finish(job, STOPPING if answer is None else msgspec.json.encode({"answer": answer}))

    def _parse(self, payload: bytes) -> tuple[Verb, dict[str, Any]]:
        """The verb in a payload, and the keyword arguments of its method."""
        values = _decode(payload)
        name = values.pop("do")
        verb = self._verbs.get(name)
        if verb is None:
            raise AdminError("bad-request", f"unknown verb {name!r}; the verbs are {', '.join(self._verbs)}")
        return verb, _arguments(verb, values)

    async def _call(
        self, verb: Verb, arguments: dict[str, Any], identity: Identity | None, peer: Peer | None
    ) -> dict[str, Any]:
        answer, unanswered = await self._admin.ask(verb, arguments, identity, peer)
        if verb.changes:
            await self._tick_loop.durable()
        reply = {"answer": jsonbytes.encode(answer) if isinstance(answer, bytes) else answer}
        return {**reply, "unanswered": unanswered} if unanswered else reply

    def _finish_soon(self, job: LiveJob, result: bytes) -> None:
        """Finish a control job outside of the engine's verb that is running now."""
        self._tick_loop.loop.call_soon(self._finish, job, result)

    def _finish(self, job: LiveJob, result: bytes) -> None:
        engine = self._tick_loop.begin_tick()
        if job.state is RUNNING:  # it may have been cancelled meanwhile
            engine.run_times.remove(engine.now - job.started_at)
            engine.outcomes.done -= 1
            engine.complete(self, job, result)
        self._unregister_if_unused()


def _decode(payload: bytes) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise AdminError("bad-request", f"the payload is not JSON: {error}") from None
    if not isinstance(values, dict) or not isinstance(values.get("do"), str):
        raise AdminError("bad-request", 'the payload must be a JSON object with a verb, such as {"do": "overview"}')
    return values


def _arguments(verb: Verb, values: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of the verb's method."""
    names = [argument.name for argument in verb.arguments]
    for name in values:
        if name not in names:
            known = f"it takes {', '.join(names)}" if names else "it takes no arguments"
            raise AdminError("bad-request", f"{verb.name} has no argument {name!r}; {known}")
    for argument in verb.arguments:
        if argument.required and argument.name not in values:
            raise AdminError("bad-request", f"{verb.name} needs the argument {argument.name!r}")
    return method_arguments(verb, _values(verb, values))


def _values(verb: Verb, values: dict[str, Any]) -> dict[str, Any]:
    read = {}
    for argument in verb.arguments:
        if argument.name in values:
            try:
                read[argument.name] = _READERS[argument.type](values[argument.name])
            except AdminError as error:
                raise AdminError("bad-request", f"{argument.name}: {error.text}") from None
    return read
