"""What workers do by HTTP: register, claim jobs by long poll, report on them, leave."""

import math
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from starlette.responses import Response

from geartrain import jsonbytes
from geartrain.doors.http import request as api
from geartrain.doors.http.options import CONTROL
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.worker import HttpWorker
from geartrain.engine.job import LiveJob, Progress
from geartrain.jsonbytes import JsonBytes
from geartrain.model import Expiry, Priority

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext

MOST_WORKERS: Final = 100_000
LONGEST_WAIT: Final = 300.0
LONGEST_LEASE: Final = 86400.0

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Registration(msgspec.Struct, forbid_unknown_fields=True):
    """What a worker says of itself."""

    functions: Annotated[list[JsonBytes], msgspec.Meta(min_length=1, max_length=10_000)]
    name: JsonBytes = ""  # what people shall call it
    lease: Annotated[float, msgspec.Meta(ge=1, le=LONGEST_LEASE)] | None = None  # seconds of silence until it is gone
    timeout: Seconds = 0.0  # seconds that a job may take here; then another worker gets it. 0: no limit


class Registered(msgspec.Struct, frozen=True):
    """How a worker is known from now on."""

    id: str
    lease: float


class ClaimQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How long to wait for a job."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a job")] = 0.0


class Assignment(msgspec.Struct, frozen=True):
    """A job that a worker has been given."""

    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    payload: JsonBytes
    priority: str
    background: bool
    attempts: int  # this one included
    submitted_at: float
    deadline: float | None  # when it goes to another worker if it is not over


class ProgressReport(msgspec.Struct, forbid_unknown_fields=True):
    """How far a job is."""

    numerator: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    denominator: Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class FailureReport(msgspec.Struct, forbid_unknown_fields=True):
    """Why a job could not be done."""

    reason: str = "worker reported failure"
    data: JsonBytes | None = None  # what its clients are told, where their protocols can say it
    code: Annotated[int, msgspec.Meta(ge=1, le=255)] = 1
    retry: bool = False  # let it be tried again after a while


class Postponement(msgspec.Struct, forbid_unknown_fields=True):
    """When a job shall run again: after so many seconds, or at a time."""

    delay: Seconds | None = None
    run_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None


class Workers:
    """Who is registered."""

    def __init__(self, context: "HttpContext") -> None:
        self._context = context
        self._workers: dict[str, HttpWorker] = {}  # by key

    def register(self, registration: Registration, peer: str) -> HttpWorker:
        """A new worker, which offers its functions from now on."""
        if len(self._workers) >= MOST_WORKERS:
            raise Refusal("unavailable", f"{MOST_WORKERS} workers are registered already, which is the limit")
        context = self._context
        engine = context.now()
        lease = registration.lease or context.options.worker_lease
        worker = HttpWorker(context, jsonbytes.decode(registration.name), lease, self.remove)
        worker.peer = peer
        for function in registration.functions:
            engine.register(worker, jsonbytes.decode(function), registration.timeout, Expiry.REQUEUE)
        self._workers[worker.key] = worker
        return worker

    def find(self, key: bytes) -> HttpWorker:
        """The worker of that id, which has just been heard of."""
        worker = self._workers.get(key.decode("utf-8", "replace"))
        if worker is None:
            raise Refusal("not-found", "there is no such worker: it left, or was silent too long; register again")
        worker.heard()
        return worker

    def remove(self, worker: HttpWorker) -> None:
        """It leaves, or is gone."""
        if self._workers.pop(worker.key, None) is not None:
            worker.leave()

    def close(self) -> None:
        """The door closes."""
        for worker in list(self._workers.values()):
            self.remove(worker)


async def register(request: ApiRequest) -> Response:
    """POST /workers."""
    registration: Registration = request.body
    if not all(registration.functions):
        raise Refusal("bad-request", "a function has a name")
    if CONTROL in map(jsonbytes.decode, registration.functions):
        raise Refusal("conflict", f"{CONTROL.decode()} is the server's own")
    client = request.http.client
    worker = request.context.workers.register(registration, f"{client.host}:{client.port}" if client else "")
    return api.json(Registered(worker.key, worker.lease), 201)


async def renew(request: ApiRequest) -> Response:
    """POST /workers/{id}/renew."""
    worker = request.context.workers.find(request.names[0])
    return api.json(Registered(worker.key, worker.lease))


async def unregister(request: ApiRequest) -> Response:
    """DELETE /workers/{id}."""
    request.context.workers.remove(request.context.workers.find(request.names[0]))
    return api.nothing()


async def claim(request: ApiRequest) -> Response:
    """POST /workers/{id}/claim."""
    context = request.context
    worker = context.workers.find(request.names[0])
    context.now()
    wanted = worker.ask()
    given = False
    try:
        given = await context.wait(wanted, request.http.receive, request.query.wait) and not wanted.cancelled()
    finally:
        if not given:
            context.now()
            worker.withdraw(wanted)
    worker.heard()
    return api.json(_assignment(wanted.result())) if given else api.nothing()


async def progress(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/progress."""
    _, job = _own(request)
    report: ProgressReport = request.body
    request.context.now().progress(job, Progress(report.numerator, report.denominator))
    return api.nothing()


async def data(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/data."""
    _, job = _own(request)
    request.context.now().data(job, request.body)
    return api.nothing()


async def warning(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/warning."""
    _, job = _own(request)
    request.context.now().warning(job, request.body)
    return api.nothing()


async def complete(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/complete."""
    worker, job = _own(request)
    request.context.now().complete(worker, job, request.body)
    await request.context.durable()
    return api.nothing()


async def fail(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/fail."""
    worker, job = _own(request)
    report: FailureReport = request.body
    if report.data is not None and report.retry:
        raise Refusal("bad-request", "data is for the clients of a job that is over, and retry lets it go on")
    engine = request.context.now()
    if report.data is not None or report.code != 1:
        said = jsonbytes.decode(report.data) if report.data is not None else report.reason.encode()
        engine.raise_exception(worker, job, said, report.code)
    else:
        engine.fail(worker, job, report.reason, report.retry)
    await request.context.durable()
    return api.nothing()


async def reschedule(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/reschedule."""
    worker, job = _own(request)
    wish: Postponement = request.body
    if (wish.delay is None) == (wish.run_at is None):
        raise Refusal("bad-request", "give delay or run_at")
    engine = request.context.now()
    run_at = wish.run_at if wish.run_at is not None else engine.now + (wish.delay or 0.0)
    engine.reschedule(worker, job, run_at)
    await request.context.durable()
    return api.nothing()


def _own(request: ApiRequest) -> tuple[HttpWorker, LiveJob]:
    """The worker and the job of a report; the job must be the worker's."""
    key, handle = request.names
    worker = request.context.workers.find(key)
    job = worker.running.get(handle)
    if job is None:
        raise Refusal("conflict", "this worker does not have that job (any more): its time ran out, or it is over")
    return worker, job


def _assignment(job: LiveJob) -> Assignment:
    return Assignment(
        jsonbytes.encode(job.handle),
        jsonbytes.encode(job.function),
        jsonbytes.encode(job.unique),
        jsonbytes.encode(job.payload),
        Priority(job.priority).name.lower(),
        job.background,
        job.attempts,
        job.submitted_at,
        job.deadline if job.deadline and math.isfinite(job.deadline) else None,
    )
