"""Views: the JSON objects of the HTTP API, of the control function and of `--json`.

Times are in seconds of the epoch, null where there is none. Bytes are written as `jsonbytes` writes them: as a string
where they are UTF-8, otherwise as `{"base64": "..."}`.
"""

from itertools import islice
from typing import Final, Generic, TypeVar

import msgspec

from geartrain import jsonbytes
from geartrain.engine.engine import Engine
from geartrain.engine.failed_jobs import GIVEN_UP
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import FunctionPolicy
from geartrain.engine.worker import Worker
from geartrain.jsonbytes import JsonBytes
from geartrain.model import Attempt, FailedPayload, FailureAction, JobState, Priority, Record, unpack_attempts

V = TypeVar("V")


class Ping(msgspec.Struct, frozen=True):
    """Which server answers."""

    server: str
    version: str


class Page(msgspec.Struct, Generic[V], frozen=True):
    """Part of a list. `after` requests the next part, and is empty at the end."""

    items: list[V]
    after: str = ""
    total: int | None = None  # of all pages; null where it would have to be counted


class FunctionOptions(msgspec.Struct, frozen=True):
    """The settings that a function has of its own; null: the server's setting applies."""

    failures: str | None = None  # keep, dead or forget
    keep_for: float | None = None  # seconds
    keep_failed_for: float | None = None  # seconds
    max_run: float | None = None  # seconds that a worker may take for a job; null or 0: no limit


class UserView(msgspec.Struct, frozen=True):
    """A user, with what it has on the server of what its quota allows. A limit of 0 is none."""

    name: str
    may: list[str]  # rights; empty for a user that is gone but has jobs
    connections: int
    max_connections: int
    queued_jobs: int  # that have not ended; dead ones included
    max_queued_jobs: int
    queued_bytes: int  # of these jobs
    max_queued_bytes: int


class FunctionView(msgspec.Struct, frozen=True):
    """A function, its queue, and its totals since the start of the server."""

    name: JsonBytes
    queued: int
    running: int
    scheduled: int
    dead: int
    workers: int
    paused: bool
    limits: tuple[int, int, int]  # by priority: high, normal, low; 0: no limit
    oldest: float | None  # when the queued job that has been ready for longest became ready
    submitted: int
    completed: int
    failed: int
    settings: FunctionOptions = FunctionOptions()


class AttemptView(msgspec.Struct, frozen=True):
    """An attempt that did not end the job."""

    started_at: float
    ended_at: float
    door: str
    worker: JsonBytes
    why: str


class JobView(msgspec.Struct, frozen=True):
    """A job. Lists cut `payload` and `result`; the sizes are those of the whole.

    `result_kept` is less than `result_size` where the server has only the beginning of the result.
    """

    id: int
    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    state: str  # scheduled, queued, running, done, failed, cancelled, dead, expired
    priority: str  # high, normal, low
    background: bool
    door: str  # the protocol that submitted it
    submitted_at: float
    run_at: float | None
    started_at: float | None
    finished_at: float | None
    attempts: int
    timeout: float  # seconds that a worker may take; 0: no limit
    worker: JsonBytes  # the one that runs it or ran it last
    worker_door: str
    numerator: float | None  # progress of a running job
    denominator: float | None
    code: int
    reason: str
    payload: JsonBytes | None  # null: not kept; a failed job that has a payload can be retried
    payload_size: int | None
    result: JsonBytes | None
    result_size: int | None
    trials: list[AttemptView] = []
    result_kept: int | None = None  # bytes of the result that can be read, of a job that has ended
    user: str = ""  # that submitted it; empty: a peer that is no user, or a job that has ended
    expires_at: float | None = None  # no worker gets it from then on; null: it does not expire, or has ended
    keep_until: float | None = None  # no limit removes the record before this time; null: the server's settings apply
    # When a job that failed, is dead or has ended is removed; limits of number and size may remove it before. Null: it
    # has not ended, or there is no limit of time.
    removed_at: float | None = None


class WorkerView(msgspec.Struct, frozen=True):
    """A connected worker."""

    id: int
    name: JsonBytes
    door: str
    peer: str
    since: float
    functions: list[JsonBytes]  # the first hundred
    function_count: int
    idle: bool  # waiting for a job
    running: list[JsonBytes]  # handles, the first hundred
    running_since: float | None  # start of the job that has been running for longest


class ScheduleView(msgspec.Struct, frozen=True):
    """A schedule."""

    name: str
    expression: str  # cron fields, `@hourly`, `@every 15s`
    timezone: str
    function: JsonBytes
    payload: JsonBytes
    priority: str
    unique: bool  # a run is skipped while the job of the previous run has not ended
    missed: str  # what becomes of missed runs: skip, once or all
    expires: float  # seconds that a job may wait for a worker; 0: no limit
    paused: bool
    next_at: float | None
    last_at: float | None
    last_handle: JsonBytes


class Latency(msgspec.Struct, frozen=True):
    """Percentiles in seconds, over the last minute; null where there are no values."""

    p50: float | None
    p95: float | None
    p99: float | None


class Overview(msgspec.Struct, frozen=True):
    """Counts, rates and latencies of the whole server."""

    now: float
    uptime: float
    queued: int
    running: int
    scheduled: int
    dead: int
    queued_bytes: int  # of all jobs, dead ones included: their payloads, and 512 for each
    functions: int
    workers: int
    connections: int
    submitted: int  # since the start of the server, like the next two
    completed: int
    failed: int
    submitted_rate: float  # per second, over the last few seconds
    completed_rate: float
    oldest: float | None  # when the queued job that has been ready for longest became ready
    wait: Latency  # from ready to run until claimed by a worker
    run: Latency  # from claimed until ended


class Sample(msgspec.Struct, frozen=True):
    """One point of the charts."""

    at: float
    submitted: float  # per second
    completed: float
    failed: float
    queued: int
    running: int


class FunctionSample(msgspec.Struct, frozen=True):
    """One point of the charts of a function."""

    at: float
    submitted: float  # per second, like the next two
    completed: float
    failed: float
    queued: int
    running: int
    wait_p50: float | None  # seconds, of the jobs that were claimed since the sample before; null: none
    wait_p95: float | None
    run_p50: float | None  # of the jobs that ended
    run_p95: float | None


class FunctionHistoryView(msgspec.Struct, frozen=True):
    """The last hour of a function."""

    measured: bool  # false: no job of it has run yet, or `metrics_functions` others have a history already
    interval: int  # seconds between two samples
    samples: list[FunctionSample]  # oldest first
    wait: Latency  # from ready to run until claimed by a worker
    run: Latency  # from claimed until ended


class DoorView(msgspec.Struct, frozen=True):
    """An address that the server listens on."""

    protocol: str
    address: str
    connections: int  # of the protocol, over all its addresses


class StoreView(msgspec.Struct, frozen=True):
    """The store."""

    url: str
    durable: bool
    size: int | None  # bytes on disk
    pending: int  # changes that are not durable yet
    commits: int
    commit_seconds: float  # that all commits took together
    commit_p50: float | None  # seconds until a batch is durable
    commit_p99: float | None


class ReloadView(msgspec.Struct, frozen=True):
    """What a reload has read."""

    users: int  # that can prove who they are, by a token, a certificate or an account
    certificates: list[str]  # the files of the TLS certificates
    closed_connections: int  # of users that were changed or revoked


class System(msgspec.Struct, frozen=True):
    """Version, platform, doors and store of the server."""

    version: str
    compiled: bool
    python: str
    loop: str
    platform: str
    pid: int
    started_at: float
    memory: int  # bytes resident
    doors: list[DoorView]
    store: StoreView


class JobEvent(msgspec.Struct, frozen=True):
    """Something that happened to a job."""

    at: float
    what: str  # submitted, started, progress, requeued, scheduled, done, failed, cancelled, dead, expired
    handle: JsonBytes
    function: JsonBytes
    door: str
    worker: JsonBytes = ""
    reason: str = ""


class FailureGroup(msgspec.Struct, frozen=True):
    """Failed and dead jobs whose reasons differ only in numbers, ids, quoted values and addresses."""

    reason: str  # without those; the filter `reason` selects the jobs of the group
    failed: int  # jobs
    dead: int
    functions: list[JsonBytes]  # the first ten
    function_count: int
    first_at: float  # when the first and the last of them ended
    last_at: float
    handle: JsonBytes  # of the last one
    example: str  # its reason, one line


class FailureGroups(msgspec.Struct, frozen=True):
    """Failed and dead jobs in groups, the largest first."""

    groups: list[FailureGroup]
    scanned: int  # jobs that were read
    others: int  # of those, jobs of groups that are not listed because there are too many
    more: bool  # there are older jobs, which were not read


class BulkReport(msgspec.Struct, frozen=True):
    """The result of a bulk action."""

    done: int
    refused: int  # jobs that had changed state meanwhile
    more: bool  # more jobs match: repeat the call


class Problem(msgspec.Struct, frozen=True):
    """Why a verb could not be carried out."""

    kind: str  # bad-request, not-found, conflict, unsupported or unavailable
    text: str


PRIORITIES: Final = tuple(priority.name.lower() for priority in Priority)
STATES: Final = tuple(state.name.lower() for state in JobState)
LISTED_BYTES: Final = 256  # of a payload or a result, in a list
SHOWN_BYTES: Final = 64 * 1024  # of the same, in the view of one job; the verbs payload and result return all
_NAMES_SHOWN: Final = 100


def function_view(engine: Engine, function: Function) -> FunctionView:
    """A function."""
    return FunctionView(
        name=jsonbytes.encode(function.name),
        queued=function.queued,
        running=function.running,
        scheduled=function.scheduled,
        dead=engine.dead_counts.get(function.name, 0),
        workers=function.workers,
        paused=function.paused,
        limits=function.limits,
        oldest=function.oldest_ready_at() or None,
        submitted=function.submitted,
        completed=function.completed,
        failed=function.failed,
        settings=function_options(engine.function_policies.get(function.name)),
    )


def function_options(policy: FunctionPolicy | None) -> FunctionOptions:
    """The settings of a function."""
    if policy is None:
        return FunctionOptions()
    failures = None if policy.failures is None else str(policy.failures.value)
    return FunctionOptions(failures, policy.keep_for, policy.keep_failed_for, policy.max_run)


def function_policy(options: FunctionOptions) -> FunctionPolicy:
    """The same as the engine has them."""
    failures = None if options.failures is None else FailureAction(options.failures)
    return FunctionPolicy(failures, options.keep_for, options.keep_failed_for, options.max_run)


def worker_view(worker: Worker) -> WorkerView:
    """A worker."""
    jobs = worker.running.jobs()
    return WorkerView(
        id=worker.number,
        name=jsonbytes.encode(worker.name),
        door=worker.door,
        peer=worker.peer,
        since=worker.since,
        functions=[jsonbytes.encode(name) for name in islice(worker.abilities, _NAMES_SHOWN)],
        function_count=len(worker.abilities),
        idle=worker.idle,
        running=[jsonbytes.encode(job.handle) for job in jobs[:_NAMES_SHOWN]],
        running_since=min((job.started_at for job in jobs), default=None),
    )


def job_view(job: LiveJob, longest: int, result: bytes | None = None, finished_at: float | None = None) -> JobView:
    """A job that has not ended, or that has just ended with this result."""
    owner, progress = job.owner, job.progress
    if job.state is JobState.DEAD and job.failed_attempts:
        finished_at = job.failed_attempts[-1].ended_at
    return JobView(
        id=job.id,
        handle=jsonbytes.encode(job.handle),
        function=jsonbytes.encode(job.function),
        unique=jsonbytes.encode(job.unique),
        state=STATES[job.state],
        priority=PRIORITIES[job.priority],
        background=job.background,
        door=job.door,
        submitted_at=job.submitted_at,
        run_at=job.run_at,
        started_at=job.started_at or None,
        finished_at=finished_at,
        attempts=job.attempts,
        timeout=job.timeout,
        worker=jsonbytes.encode(owner.name) if owner is not None else "",
        worker_door=owner.door if owner is not None else "",
        numerator=progress.numerator if progress is not None else None,
        denominator=progress.denominator if progress is not None else None,
        code=job.code or (GIVEN_UP if job.state is JobState.DEAD else 0),
        reason=job.reason,
        payload=jsonbytes.encode(job.payload, longest),
        payload_size=len(job.payload),
        result=None if result is None else jsonbytes.encode(result, longest),
        result_size=None if result is None else len(result),
        trials=_attempt_views(job.failed_attempts or []),
        expires_at=job.expires_at or None,
        user=job.user,
    )


def record_view(record: Record, longest: int, payload: FailedPayload | None = None) -> JobView:
    """A job that has ended; `payload` is that of a failed job that is kept whole."""
    return JobView(
        id=record.id,
        handle=jsonbytes.encode(record.handle),
        function=jsonbytes.encode(record.function),
        unique=jsonbytes.encode(record.unique),
        state=STATES[record.state],
        priority=PRIORITIES[record.priority],
        background=True,
        door=record.door,
        submitted_at=record.submitted_at,
        run_at=None,
        started_at=record.started_at or None,
        finished_at=record.finished_at,
        attempts=record.attempts,
        timeout=0.0,
        worker=jsonbytes.encode(record.worker),
        worker_door=record.worker_door,
        numerator=None,
        denominator=None,
        code=record.code,
        reason=record.reason,
        payload=None if payload is None else jsonbytes.encode(payload.data, longest),
        payload_size=None if payload is None else payload.size,
        result=jsonbytes.encode(record.result, longest),
        result_size=record.full_size,
        trials=_attempt_views(unpack_attempts(record.failed_attempts)),
        result_kept=record.kept_size,
        keep_until=abs(record.keep_until) or None,
    )


def cut_text(record: Record) -> str:
    """What to say about a result of which only the beginning is kept; its subject comes before."""
    return (
        f"was cut: the first {record.kept_size:,} of {record.full_size:,} bytes are kept "
        "(settings result_max and keep_results)"
    )


def _attempt_views(attempts: list[Attempt]) -> list[AttemptView]:
    return [
        AttemptView(
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            door=attempt.door,
            worker=jsonbytes.encode(attempt.worker),
            why=attempt.reason,
        )
        for attempt in attempts
    ]
