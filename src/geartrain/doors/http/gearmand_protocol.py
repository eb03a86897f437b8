"""gearmand's HTTP protocol: a request for `/FUNCTION` submits a job, and its result is the body of the answer.

Three headers have the rest of the submission, and two of the answer say what became of it:

    POST /reverse HTTP/1.1                  HTTP/1.1 200 OK
    X-Gearman-Unique: key                   X-Gearman-Job-Handle: H:lap:42
    X-Gearman-Background: true              X-Gearman-Command: JOB_CREATED
    X-Gearman-Priority: high

The paths of the API and of the dashboard keep their meaning. The name of a function is the rest of the target as it was
sent, without decoding, with a query if there is one, as gearmand takes it.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.admin.job_watch import JobEnd
from geartrain.doors.gearman import unique
from geartrain.doors.http import problems, static_files
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import HttpPeer, Request
from geartrain.doors.http.response import Response
from geartrain.doors.http.route import SUBMITTERS, Answer
from geartrain.doors.http.watcher import EndWatcher
from geartrain.engine.job import LiveJob
from geartrain.errors import NotDurableError, RequestError, WireError
from geartrain.model import JobState, Priority
from geartrain.rights import Identity
from geartrain.runtime.submitted_handle import SubmittedHandle

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext

_DOOR: Final = "http"
_WITH_PAYLOAD: Final = frozenset({"POST", "PUT"})
_METHODS: Final = _WITH_PAYLOAD | {"GET"}
_PRIORITIES: Final = {"high": Priority.HIGH, "low": Priority.LOW}
_BY_PAYLOAD: Final = "-"  # gearmand's default: jobs with the same payload are one job
_HANDLE: Final = "X-Gearman-Job-Handle"
_COMMAND: Final = "X-Gearman-Command"
_ERROR: Final = {_COMMAND: "ERROR"}
_MEDIA_TYPE: Final = "application/octet-stream"
# Browsers ask for it by themselves; that is not a submission.
_FAVICON: Final = "favicon.ico"


def is_function(request: Request) -> bool:
    """Whether a path that has no route is the name of a function, and not a path of the API or of the dashboard."""
    name = request.path.lstrip("/")
    return bool(name) and not name.startswith("api/") and name != _FAVICON and not static_files.exists(name)


def admit(request: Request, context: "HttpContext") -> Callable[[bytes], Answer]:
    """What submits the job when its payload has arrived; a Refusal if the client may not."""
    context.guard.check_submission(request)
    identity = context.guard.identity(request)
    if identity is not None:
        HttpPeer(request, context).log_in(identity)
    context.guard.require(identity, SUBMITTERS)
    if request.method not in _METHODS:
        allowed = ", ".join(sorted(_METHODS))
        raise Refusal("method-not-allowed", f"a function supports {allowed}", {"Allow": allowed})
    return functools.partial(_answer, request, context, identity)


def _answer(request: Request, context: "HttpContext", identity: Identity | None, data: bytes) -> Answer:
    """Submit the job. A background job is answered when it is durable, any other when it has ended."""
    function = _function(request)
    payload = data if request.method in _WITH_PAYLOAD else b""
    if request.headers.get("x-gearman-background", "").lower() == "true":
        return _submit_background(request, context, identity, function, payload)
    return _submit_and_wait(request, context, identity, function, payload)


async def _submit_background(
    request: Request, context: "HttpContext", identity: Identity | None, function: bytes, payload: bytes
) -> Response:
    job = _submit(request, context, identity, function, payload, None)
    submitted = SubmittedHandle(context.tick_loop.engine, job)
    try:
        await context.tick_loop.durable()
        await submitted.settled()
    except NotDurableError as error:
        raise Refusal("unavailable", str(error), _ERROR) from None
    return _response(submitted.handle, "JOB_CREATED")


async def _submit_and_wait(
    request: Request, context: "HttpContext", identity: Identity | None, function: bytes, payload: bytes
) -> Response:
    tick_loop = context.tick_loop
    watcher = EndWatcher(tick_loop.engine, tick_loop.loop)
    handle = _submit(request, context, identity, function, payload, watcher).handle
    try:
        has_ended = await context.wait(watcher.end, request)
    finally:
        tick_loop.begin_tick().unwatch_all(watcher)
    if not has_ended:
        raise Refusal("unavailable", "the server is stopping", {**_ERROR, "Connection": "close"})
    return _ended(handle, watcher.end.result(), context.options.exceptions)


def _ended(handle: bytes, end: JobEnd, exceptions: bool) -> Response:
    """As with gearmand, the status is 200 also for a job that failed."""
    if end.job.state is JobState.DONE:
        return _response(handle, "WORK_COMPLETE", end.result or b"")
    if end.result is not None and exceptions:
        return _response(handle, "WORK_EXCEPTION", end.result)
    return _response(handle, "WORK_FAIL")


def _response(handle: bytes, command: str, body: bytes = b"") -> Response:
    return Response(body, 200, {_HANDLE: handle.decode("latin-1"), _COMMAND: command}, _MEDIA_TYPE)


def _function(request: Request) -> bytes:
    """The target without the slashes before it."""
    path, query = request.head.path, request.head.query
    return (path + b"?" + query if query else path).lstrip(b"/")


def _submit(
    request: Request,
    context: "HttpContext",
    identity: Identity | None,
    function: bytes,
    payload: bytes,
    watcher: EndWatcher | None,
) -> LiveJob:
    headers = request.headers
    engine = context.tick_loop.begin_tick()
    engine.actor, engine.peer = identity, HttpPeer(request, context)
    try:
        return engine.submit(
            function,
            unique=unique.key((headers.get("x-gearman-unique") or _BY_PAYLOAD).encode("latin-1"), payload),
            payload=payload,
            priority=_PRIORITIES.get(headers.get("x-gearman-priority", "").lower(), Priority.NORMAL),
            background=watcher is None,
            watcher=watcher,
            door=_DOOR,
        )
    except RequestError as error:
        raise Refusal(problems.kind_of(error), str(error), _ERROR) from None
    except WireError as error:
        raise Refusal("bad-request", error.text, _ERROR) from None
