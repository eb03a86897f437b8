"""Submitting a job, and waiting for its end if that is wanted."""

import asyncio
import base64
import binascii
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from starlette.responses import Response

from geartrain import jsonbytes
from geartrain.admin import views
from geartrain.doors.http import request as api
from geartrain.doors.http import tokens
from geartrain.doors.http.options import CONTROL
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.route import API
from geartrain.doors.http.worker_api import LONGEST_WAIT, Seconds
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.errors import QueueFullError
from geartrain.jsonbytes import JsonBytes
from geartrain.model import Priority

_DOOR: Final = "http"


class Submission(msgspec.Struct, forbid_unknown_fields=True):
    """A job as it is ordered."""

    function: JsonBytes
    payload: JsonBytes = ""
    payload_base64: str | None = None  # instead of `payload`, for bytes that are no text
    background: bool = True  # durable, and runs whether anybody waits or not
    priority: Literal["high", "normal", "low"] = "normal"
    unique: JsonBytes = ""
    run_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None  # seconds of the epoch
    delay: Seconds | None = None  # seconds from now, instead of `run_at`
    timeout: Seconds = 0.0  # seconds that a worker may take; 0: no limit
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0  # seconds: answer when it is over


class Ending(NamedTuple):
    """How a job ended."""

    job: LiveJob
    result: bytes | None
    at: float


class Waiter(Watcher):
    """Hears how one job ends."""

    __slots__ = ("_engine", "ending")

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._engine = engine
        self.ending: asyncio.Future[Ending] = loop.create_future()

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._end(job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._end(job, None)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._end(job, data)

    def _end(self, job: LiveJob, result: bytes | None) -> None:
        if not self.ending.done():
            self.ending.set_result(Ending(job, result, self._engine.now))


async def submit(request: ApiRequest) -> Response:
    """POST /jobs."""
    order: Submission = request.body
    context = request.context
    _check(request, order)
    waiter = Waiter(context.engine, context.tick_loop.loop) if order.wait else None
    job = _queue(request, order, waiter)
    view = views.job_view(job, views.SHOWN_BYTES)
    handle = job.handle
    try:
        if order.background:
            await context.durable()
        if waiter is None:
            return api.json(view, 201, {"Location": f"{API}/jobs/{api.quoted(handle)}"})
        over = await context.wait(waiter.ending, request.http.receive, order.wait)
    finally:
        if waiter is not None:
            context.now().unwatch_all(waiter)
    if over:
        return api.json(_over(waiter.ending.result()))
    if not order.background:
        raise Refusal("not-over", f"the job was not over after {order.wait:g} seconds, and nobody waits for it now")
    return api.json(await context.admin.job(handle), 202)


def _over(ending: Ending) -> views.JobView:
    """The job, with the whole of its result: whoever waited may have no other way to get it."""
    view = views.job_view(ending.job, views.SHOWN_BYTES, ending.result, ending.at)
    return msgspec.structs.replace(view, result=None if ending.result is None else jsonbytes.encode(ending.result))


def _queue(request: ApiRequest, order: Submission, waiter: Waiter | None) -> LiveJob:
    engine = request.context.now()
    run_at = order.run_at or 0.0
    if order.delay:
        run_at = engine.now + order.delay
    try:
        return engine.submit(
            jsonbytes.decode(order.function),
            jsonbytes.decode(order.unique),
            _payload(order),
            Priority[order.priority.upper()],
            order.background,
            waiter,
            run_at if run_at > engine.now else 0.0,
            _DOOR,
            order.timeout,
        )
    except QueueFullError as error:
        raise Refusal("queue-full", str(error)) from None


def _check(request: ApiRequest, order: Submission) -> None:
    """What the types do not say."""
    function = jsonbytes.decode(order.function)
    if not function:
        raise Refusal("bad-request", "a job has a function")
    if order.payload and order.payload_base64 is not None:
        raise Refusal("bad-request", "give payload or payload_base64")
    if order.run_at is not None and order.delay is not None:
        raise Refusal("bad-request", "give run_at or delay")
    if not order.background and not order.wait:
        raise Refusal("bad-request", "a job that is not in the background lives while somebody waits: give wait")
    if function == CONTROL and tokens.ADMIN not in request.scopes:
        raise Refusal("forbidden", f"{CONTROL.decode()} steers the server, which needs the scope admin")


def _payload(order: Submission) -> bytes:
    if order.payload_base64 is None:
        return jsonbytes.decode(order.payload)
    try:
        return base64.b64decode(order.payload_base64, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal("bad-request", "payload_base64 is no base64") from None
