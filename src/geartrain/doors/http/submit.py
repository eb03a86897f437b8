"""POST /jobs: submit a job, and wait for its end if requested."""

import base64
import binascii
from typing import Annotated, Final, Literal

import msgspec
from starlette.responses import Response

from geartrain import jsonbytes
from geartrain.admin import parents, presentation, views
from geartrain.admin.job_watch import JobEnd
from geartrain.doors.http import request as api
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.route import API
from geartrain.doors.http.watcher import EndWatcher
from geartrain.doors.http.worker_commands import LONGEST_WAIT, Seconds
from geartrain.engine.job import LiveJob
from geartrain.jsonbytes import JsonBytes
from geartrain.model import Priority
from geartrain.runtime.submitted_handle import SubmittedHandle

_DOOR: Final = "http"
LONGEST_KEPT: Final = 366 * 86_400.0  # seconds


class Submission(msgspec.Struct, forbid_unknown_fields=True):
    """A job to be submitted."""

    function: JsonBytes
    payload: JsonBytes = ""
    payload_base64: str | None = None  # instead of `payload`, for bytes that are not UTF-8
    background: bool = True  # durable, and runs whether a client waits or not
    priority: views.PriorityField = "normal"
    unique: JsonBytes = ""
    run_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None  # seconds of the epoch
    delay: Seconds | None = None  # seconds from now, instead of `run_at`
    timeout: Seconds = 0.0  # seconds that a worker may take; 0: no limit
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0  # seconds to wait for its end
    # Seconds that its record and result are kept at least; 0: as long as the server's settings say.
    keep_for: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_KEPT)] = 0.0
    expires_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None  # seconds of the epoch
    expires: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_KEPT)] | None = None  # seconds from now, instead
    partition: JsonBytes = ""  # tenant, account or host: partitions of a function take turns
    after: Annotated[list[JsonBytes], msgspec.Meta(max_length=parents.MOST_PARENTS)] = []  # handles; it runs after them
    on_failure: Literal["cancel", "run"] = "cancel"  # if one of them fails, is cancelled or expires


async def submit(request: ApiRequest) -> Response:
    """POST /jobs."""
    submission: Submission = request.body
    context = request.context
    check(submission)
    tick_loop = context.tick_loop
    watcher = EndWatcher(tick_loop.engine, tick_loop.loop) if submission.wait else None
    job = queue(request, submission, watcher, await after(request, submission))
    view = presentation.job_view(job, views.SHOWN_BYTES)
    submitted = SubmittedHandle(tick_loop.engine, job)
    try:
        if submission.background:
            await tick_loop.durable()
            await submitted.settled()
        handle = submitted.handle
        if watcher is None:
            if handle != job.handle:  # another server has a job with this unique key
                view = msgspec.structs.replace(view, handle=jsonbytes.encode(handle))
            return api.json(view, 201, {"Location": f"{API}/jobs/{api.quoted(handle)}"})
        has_ended = await context.wait(watcher.end, request.http.receive, submission.wait)
    finally:
        if watcher is not None:
            tick_loop.begin_tick().unwatch_all(watcher)
    if has_ended:
        return api.json(_ended(watcher.end.result()))
    if not submission.background:
        raise Refusal("not-over", f"the job did not end within {submission.wait:g} seconds; its result is discarded")
    return api.json(await context.admin.job(handle), 202)


def _ended(end: JobEnd) -> views.JobView:
    """The job with its whole result: of a foreground job, nothing is kept."""
    view = presentation.job_view(end.job, views.SHOWN_BYTES, end.result, end.at)
    return msgspec.structs.replace(view, result=None if end.result is None else jsonbytes.encode(end.result))


async def after(request: ApiRequest, submission: Submission) -> bytes:
    """The jobs that a job waits for. Submit it without awaiting anything else."""
    if not submission.after:
        return b""
    handles = list(map(jsonbytes.decode, submission.after))
    return await request.context.admin.parents(handles, submission.on_failure, request.identity)


def queue(
    request: ApiRequest, submission: Submission, watcher: EndWatcher | None = None, after: bytes = b""
) -> LiveJob:
    """Submit a job to the engine."""
    engine = request.begin_tick()
    run_at = submission.run_at or 0.0
    if submission.delay:
        run_at = engine.now + submission.delay
    expires_at = engine.now + submission.expires if submission.expires else submission.expires_at or 0.0
    if expires_at and expires_at <= run_at:
        raise Refusal("bad-request", "the job would expire before it may run")
    return engine.submit(
        jsonbytes.decode(submission.function),
        unique=jsonbytes.decode(submission.unique),
        payload=_payload(submission),
        priority=Priority[submission.priority.upper()],
        background=submission.background,
        watcher=watcher,
        run_at=run_at if run_at > engine.now else 0.0,
        door=_DOOR,
        timeout=submission.timeout,
        keep_for=submission.keep_for,
        expires_at=expires_at,
        partition=jsonbytes.decode(submission.partition),
        after=after,
    )


def check(submission: Submission) -> None:
    """Check what the types do not express."""
    function = jsonbytes.decode(submission.function)
    if not function:
        raise Refusal("bad-request", "function must not be empty")
    if submission.payload and submission.payload_base64 is not None:
        raise Refusal("bad-request", "payload and payload_base64 exclude each other")
    if submission.run_at is not None and submission.delay is not None:
        raise Refusal("bad-request", "run_at and delay exclude each other")
    if submission.expires_at is not None and submission.expires is not None:
        raise Refusal("bad-request", "expires_at and expires exclude each other")
    if not submission.background and not submission.wait:
        raise Refusal("bad-request", "a foreground job needs wait: it exists only while its client waits")


def _payload(submission: Submission) -> bytes:
    if submission.payload_base64 is None:
        return jsonbytes.decode(submission.payload)
    try:
        return base64.b64decode(submission.payload_base64, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal("bad-request", "payload_base64 is not base64") from None
