"""The routes of workers: register, claim jobs by long poll, report on them, unregister."""

import math
from typing import Annotated, Final

import msgspec

from geartrain import jsonbytes
from geartrain.admin.views import PRIORITIES, PriorityField
from geartrain.doors.http import request as api
from geartrain.doors.http.door import CONTROL
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response
from geartrain.doors.http.route import Answer
from geartrain.doors.http.worker import Claim, HttpWorker
from geartrain.engine.job import LiveJob, Progress
from geartrain.jsonbytes import JsonBytes

LONGEST_WAIT: Final = 300.0
LONGEST_LEASE: Final = 86400.0
_PAYLOAD_SECONDS: Final = 1.0  # that a claim waits at least while the payload of a job for it is being read

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Registration(msgspec.Struct, forbid_unknown_fields=True):
    """A worker that registers."""

    functions: Annotated[list[JsonBytes], msgspec.Meta(min_length=1, max_length=10_000)]
    name: JsonBytes = ""  # shown in lists of workers
    lease: Annotated[float, msgspec.Meta(ge=1, le=LONGEST_LEASE)] | None = None  # seconds without a request
    timeout: Seconds = 0.0  # seconds that a job may take before it returns to its queue; 0: no limit


class RegisteredWorker(msgspec.Struct, frozen=True):
    """The id of a worker, for its requests, and its lease in seconds."""

    id: str
    lease: float


class WorkerRenewal(msgspec.Struct, frozen=True):
    """A worker with its lease, and the handles of jobs that were taken from it: cancelled, or their time was up."""

    id: str
    lease: float
    revoked: list[JsonBytes]


class WorkerRenewalQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How long to wait for a revoked job."""

    wait: Annotated[
        float,
        msgspec.Meta(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a revoked job; at most half the lease"),
    ] = 0.0


class ClaimQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How long to wait for a job."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a job")] = 0.0


class ClaimedJob(msgspec.Struct, frozen=True):
    """A job that a worker has claimed."""

    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    payload: JsonBytes
    priority: PriorityField
    background: bool
    attempts: int  # this one included
    submitted_at: float
    deadline: float | None  # when it returns to its queue unless it has ended


class ProgressReport(msgspec.Struct, forbid_unknown_fields=True):
    """The progress of a job."""

    numerator: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    denominator: Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class FailureReport(msgspec.Struct, forbid_unknown_fields=True):
    """Why a job failed."""

    reason: str = "worker reported failure"
    data: JsonBytes | None = None  # for its clients, if their protocols support it
    code: Annotated[int, msgspec.Meta(ge=1, le=255)] = 1
    retry: bool = False  # run it again later


class Postponement(msgspec.Struct, forbid_unknown_fields=True):
    """When a job may run again: in `delay` seconds, or at a time."""

    delay: Seconds | None = None
    run_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None


def register(request: ApiRequest) -> Response:
    """POST /workers."""
    registration: Registration = request.body
    functions = [jsonbytes.decode(function) for function in registration.functions]
    if not all(functions):
        raise Refusal("bad-request", "the name of a function must not be empty")
    if CONTROL in functions:
        raise Refusal("conflict", f"{CONTROL.decode()} is a function of the server itself")
    client = request.http.client
    worker = request.context.workers.register(
        functions,
        name=jsonbytes.decode(registration.name),
        lease=registration.lease,
        timeout=registration.timeout,
        identity=request.identity,
        client=request,
        peer=f"{client.host}:{client.port}" if client else "",
    )
    return api.json(RegisteredWorker(worker.key, worker.lease), 201)


async def renew(request: ApiRequest) -> Response:
    """POST /workers/{id}/renew."""
    context = request.context
    worker = context.workers.find(request.names[0])
    revocation = worker.revocation()
    heard = await context.wait(revocation, request.http, min(request.query.wait, worker.lease / 2))
    # A client that has left meanwhile, or has sent another renewal, does not take what the next one shall have.
    handles = worker.take_revocations() if heard and not revocation.cancelled() else []
    return api.json(WorkerRenewal(worker.key, worker.lease, [jsonbytes.encode(handle) for handle in handles]))


def unregister(request: ApiRequest) -> Response:
    """DELETE /workers/{id}."""
    request.context.workers.remove(request.context.workers.find(request.names[0]))
    return api.nothing()


def claim(request: ApiRequest) -> Answer:
    """POST /workers/{id}/claim."""
    context = request.context
    worker = context.workers.find(request.names[0])
    context.tick_loop.begin_tick()
    claimed = worker.claim()
    if claimed.done() and not claimed.cancelled():
        return api.json(_claimed_job(claimed.result()))
    return _claim_later(request, worker, claimed)


async def _claim_later(request: ApiRequest, worker: HttpWorker, claimed: Claim) -> Response:
    context = request.context
    has_job = False
    seconds = request.query.wait
    if worker.crew is not None and worker.crew.waits_for_payload:  # "no job" would be wrong: there are some
        seconds = max(seconds, _PAYLOAD_SECONDS)
    try:
        has_job = await context.wait(claimed, request.http, seconds) and not claimed.cancelled()
    finally:
        if not has_job:
            context.tick_loop.begin_tick()
            worker.withdraw(claimed)
    worker.renew()
    return api.json(_claimed_job(claimed.result())) if has_job else api.nothing()


def progress(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/progress."""
    _, job = _worker_and_job(request)
    report: ProgressReport = request.body
    request.context.tick_loop.begin_tick().progress(job, Progress(report.numerator, report.denominator))
    return api.nothing()


def data(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/data."""
    _, job = _worker_and_job(request)
    request.context.tick_loop.begin_tick().data(job, request.body)
    return api.nothing()


def warning(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/warning."""
    _, job = _worker_and_job(request)
    request.context.tick_loop.begin_tick().warning(job, request.body)
    return api.nothing()


def complete(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/complete."""
    worker, job = _worker_and_job(request)
    request.context.tick_loop.begin_tick().complete(worker, job, request.body)
    return api.when_durable(api.nothing())


def fail(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/fail."""
    worker, job = _worker_and_job(request)
    report: FailureReport = request.body
    if report.data is not None and report.retry:
        raise Refusal("bad-request", "data and retry exclude each other: data ends the job")
    engine = request.context.tick_loop.begin_tick()
    if report.data is not None or report.code != 1:
        data = jsonbytes.decode(report.data) if report.data is not None else report.reason.encode()
        engine.raise_exception(worker, job, data, report.code)
    else:
        engine.fail(worker, job, report.reason, report.retry)
    return api.when_durable(api.nothing())


def reschedule(request: ApiRequest) -> Response:
    """POST /workers/{id}/jobs/{handle}/reschedule."""
    worker, job = _worker_and_job(request)
    postponement: Postponement = request.body
    if (postponement.delay is None) == (postponement.run_at is None):
        raise Refusal("bad-request", "exactly one of delay and run_at is required")
    engine = request.context.tick_loop.begin_tick()
    run_at = postponement.run_at if postponement.run_at is not None else engine.now + (postponement.delay or 0.0)
    engine.reschedule(worker, job, run_at)
    return api.when_durable(api.nothing())


def _worker_and_job(request: ApiRequest) -> tuple[HttpWorker, LiveJob]:
    """The worker and the job of a report. The job must be one that the worker runs."""
    key, handle = request.names
    worker = request.context.workers.find(key)
    job = worker.running.get(handle)
    if job is None:
        raise Refusal("conflict", "this worker does not run that job: its time was up, or it has ended")
    return worker, job


def _claimed_job(job: LiveJob) -> ClaimedJob:
    return ClaimedJob(
        handle=jsonbytes.encode(job.handle),
        function=jsonbytes.encode(job.function),
        unique=jsonbytes.encode(job.unique),
        payload=jsonbytes.encode(job.payload),
        priority=PRIORITIES[job.priority],
        background=job.background,
        attempts=job.attempts,
        submitted_at=job.submitted_at,
        deadline=job.deadline if job.deadline and math.isfinite(job.deadline) else None,
    )
