"""The function `geartrain.control`: jobs that the server answers itself, by whatever protocol they come.

The payload is a JSON object that names a verb and its arguments, `{"do": "pause", "function": "reverse"}`; the job
always completes, with `{"answer": ...}` or `{"error": {"kind": ..., "text": ...}}`. Bytes are written as views write
them: as text, or as `{"base64": "..."}`. Verbs are the steward's, plus `ping` and `tail`.

The function is there only while such a job is: whoever lists functions or workers does not see it, and nobody else
can offer it. Control jobs are not counted among the others.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

import geartrain
from geartrain import jsonbytes
from geartrain.admin.jobs import JobQuery
from geartrain.admin.service import Admin
from geartrain.admin.tails import Tail, Tails
from geartrain.admin.views import Problem
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RUNNING
from geartrain.engine.worker import BuiltinWorker
from geartrain.errors import AdminError, GeartrainError
from geartrain.jsonbytes import JsonBytes
from geartrain.runtime.tick import TickLoop

FUNCTION: Final = b"geartrain.control"

_log = logging.getLogger("geartrain.control")


def _bytes(value: Any) -> bytes:
    try:
        return jsonbytes.decode(msgspec.convert(value, JsonBytes))
    except msgspec.ValidationError:
        raise AdminError("bad-request", 'bytes are a text, or {"base64": "..."}') from None


def _plain(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise AdminError("bad-request", str(error)) from None

    return read


# How the arguments are read, by their names, which mean the same in every verb.
_ARGUMENTS: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("handle", "function", "payload"), _bytes),
    **dict.fromkeys(("name", "expression", "timezone", "priority", "sort", "search", "state", "door"), _plain(str)),
    **dict.fromkeys(("reason", "action", "after"), _plain(str)),
    **dict.fromkeys(("limit", "high", "normal", "low", "id"), _plain(int)),
    **dict.fromkeys(("since", "until"), _plain(float)),
}


class Verb(NamedTuple):
    """One of them: its arguments, with those that must be given first."""

    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    changes: bool = False  # answered when it is durable


_FILTER: Final = ("state", "function", "search", "door", "since", "until")
_WHICH: Final = ("handle", "function", "unique", "id")

VERBS: Final = {
    "overview": Verb(),
    "history": Verb(optional=("seconds",)),
    "system": Verb(),
    "functions": Verb(optional=("search", "sort", "limit", "after")),
    "function": Verb(("name",)),
    "pause": Verb(("function",), changes=True),
    "resume": Verb(("function",), changes=True),
    "limit": Verb(("function",), ("high", "normal", "low"), changes=True),
    "drop": Verb(("function",), changes=True),
    "jobs": Verb(optional=(*_FILTER, "limit", "after")),
    "job": Verb(("handle",)),
    "payload": Verb(("handle",)),
    "result": Verb(("handle",)),
    "cancel": Verb(("handle",), changes=True),
    "retry": Verb(("handle",), changes=True),
    "delete": Verb(("handle",), changes=True),
    "hasten": Verb(("handle",), changes=True),
    "bulk": Verb(("action",), ("filter",), changes=True),
    "postpone": Verb(("seconds",), ("reason", *_WHICH), changes=True),
    "bury": Verb((), ("reason", *_WHICH), changes=True),
    "workers": Verb(optional=("search", "limit", "after")),
    "crons": Verb(),
    "cron": Verb(("name",)),
    "cron_set": Verb(("name", "expression", "function"), ("payload", "priority", "unique", "timezone"), changes=True),
    "cron_remove": Verb(("name",), changes=True),
    "cron_run": Verb(("name",), changes=True),
    "cron_pause": Verb(("name",), changes=True),
    "cron_resume": Verb(("name",), changes=True),
}
# Where a name means something else than in the other verbs.
_OWN: Final[dict[tuple[str, str], Callable[[Any], Any]]] = {
    ("function", "name"): _bytes,
    ("history", "seconds"): _plain(int),
    ("postpone", "seconds"): _plain(float),
    ("postpone", "unique"): _bytes,
    ("bury", "unique"): _bytes,
    ("cron_set", "unique"): _plain(bool),
}


class ControlWorker(BuiltinWorker):
    """The server's own worker."""

    __slots__ = ("_admin", "_engine", "_tails", "_tasks", "_tick_loop", "_waiting")

    def __init__(self, tick_loop: TickLoop, admin: Admin) -> None:
        super().__init__("control", b"geartrain")
        self.number = -1  # nobody's worker
        self._tick_loop = tick_loop
        self._engine = engine = tick_loop.engine
        self._admin = admin
        self._tails = Tails(engine, admin, self._finish)
        self._waiting: list[LiveJob] = []  # claimed, and not begun with
        self._tasks: set[asyncio.Task[None]] = set()
        engine.builtin_workers[FUNCTION] = self

    def activate(self) -> None:
        """Somebody has used the name: offer the function, until there is nothing to do."""
        self._engine.register(self, FUNCTION)
        self._engine.sleep(self)
        self._tick_loop.loop.call_soon(self._work)

    def wake(self) -> None:
        """Take what there is, to be answered in the next turn: whoever submitted it must be told its handle first."""
        while (job := self._engine.claim(self)) is not None:
            self._engine.waits.forget(self._engine.now - max(job.run_at, job.submitted_at))
            self._waiting.append(job)
        self._engine.sleep(self)
        if self._waiting:
            self._tick_loop.loop.call_soon(self._work)

    def rest(self) -> None:
        """The server is stopping: let nobody wait any longer."""
        self._tails.end()

    async def close(self) -> None:
        """Answer no more."""
        self._tails.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _work(self) -> None:
        self._tick_loop.begin_tick()
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            task = asyncio.ensure_future(self._answer(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._move_out()

    def _move_out(self) -> None:
        """With the last job goes the function."""
        home = self._engine.functions.get(FUNCTION)
        if home is not None and not home.total:
            self._engine.leave(self)
            self._engine.drop(FUNCTION)

    async def _answer(self, job: LiveJob) -> None:
        try:
            arguments = _read(job.payload)
            verb = arguments.pop("do")
            if verb == "tail":
                self._tails.add(_tail(job, arguments))
                return
            result = msgspec.json.encode({"answer": await self._done(verb, arguments)})
        except AdminError as error:
            result = msgspec.json.encode({"error": Problem(error.kind, error.text)})
        except GeartrainError as error:
            result = msgspec.json.encode({"error": Problem("unavailable", str(error))})
        except Exception:  # whoever asked must be told in any case
            _log.exception("a control job failed")
            result = msgspec.json.encode({"error": Problem("unavailable", "a bug of the server's; its log has more")})
        self._finish(job, result)

    async def _done(self, name: str, given: dict[str, Any]) -> Any:
        if name == "ping":
            return {"server": "geartrain", "version": geartrain.__version__}
        verb = VERBS.get(name)
        if verb is None:
            raise AdminError("bad-request", f"there is no verb {name!r}; there are {', '.join(VERBS)}, ping, tail")
        answer = getattr(self._admin, name)(**_arguments(name, verb, given))
        if isinstance(answer, Awaitable):
            answer = await answer
        if verb.changes:
            await self._tick_loop.durable()
        return jsonbytes.encode(answer) if isinstance(answer, bytes) else answer

    def _finish(self, job: LiveJob, result: bytes) -> None:
        engine = self._tick_loop.begin_tick()
        if job.state is RUNNING:  # and was not cancelled meanwhile
            engine.runs.forget(engine.now - job.started_at)
            engine.ended.done -= 1
            engine.complete(self, job, result)
        self._move_out()


def _read(payload: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise AdminError("bad-request", f"the payload is not JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("do"), str):
        raise AdminError("bad-request", 'the payload is a JSON object that says what to do: {"do": "overview"}')
    return found


def _arguments(name: str, verb: Verb, given: dict[str, Any]) -> dict[str, Any]:
    known = (*verb.needed, *verb.optional)
    for argument in given:
        if argument not in known:
            allowed = f"it takes {', '.join(known)}" if known else "it takes no arguments"
            raise AdminError("bad-request", f"{name} has no argument {argument!r}; {allowed}")
    for argument in verb.needed:
        if argument not in given:
            raise AdminError("bad-request", f"{name} needs the argument {argument!r}")
    if name == "jobs":
        return {"wanted": _filter(given)}
    if name == "bulk":
        return {"action": _argument(name, "action", given["action"]), "wanted": _filter(given.get("filter", {}))}
    return {argument: _argument(name, argument, value) for argument, value in given.items()}


def _filter(given: Any) -> JobQuery:
    if not isinstance(given, dict) or not given.keys() <= {*_FILTER, "limit", "after"}:
        raise AdminError("bad-request", f"a filter is an object with any of {', '.join(_FILTER)}")
    return JobQuery(**{name: _argument("jobs", name, value) for name, value in given.items()})


def _argument(verb: str, name: str, value: Any) -> Any:
    try:
        return (_OWN.get((verb, name)) or _ARGUMENTS[name])(value)
    except AdminError as error:
        raise AdminError("bad-request", f"{name}: {error.text}") from None


def _tail(job: LiveJob, given: dict[str, Any]) -> Tail:
    function = _bytes(given.pop("function", ""))
    what = _plain(list[str])(given.pop("what", []))
    if given:
        raise AdminError("bad-request", f"tail has no argument {next(iter(given))!r}; it takes function, what")
    return Tail(job, function, what)
