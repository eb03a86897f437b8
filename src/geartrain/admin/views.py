"""What people and programs are shown of the server; these are the JSON objects of the API and of `--json`.

Times are seconds of the epoch, null where there was none. Bytes that are text are shown as text; others as
`{"base64": "..."}`.
"""

from itertools import islice
from typing import Final, Generic, TypeVar

import msgspec

from geartrain import jsonbytes
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.state import GIVEN_UP
from geartrain.engine.worker import Worker
from geartrain.jsonbytes import JsonBytes
from geartrain.model import Attempt, JobState, Priority, Record, unpack_attempts

V = TypeVar("V")


class Ping(msgspec.Struct, frozen=True):
    """Which server answers."""

    server: str
    version: str


class Page(msgspec.Struct, Generic[V], frozen=True):
    """Part of a list; `after` asks for the next part, and is empty at the end."""

    items: list[V]
    after: str = ""
    total: int | None = None  # how many there are in all, where that is known without counting


class FunctionView(msgspec.Struct, frozen=True):
    """A function, its queue, and what became of its jobs since the start."""

    name: JsonBytes
    queued: int
    running: int
    scheduled: int
    dead: int
    workers: int
    paused: bool
    limits: tuple[int, int, int]  # by priority: high, normal, low; 0: none
    oldest: float | None  # when the job that waits longest was ready to run
    submitted: int
    completed: int
    failed: int


class AttemptView(msgspec.Struct, frozen=True):
    """An attempt that did not end the job."""

    started_at: float
    ended_at: float
    door: str
    worker: JsonBytes
    why: str


class JobView(msgspec.Struct, frozen=True):
    """A job, alive, dead or over. Lists cut `payload` and `result`; the sizes are always the whole."""

    id: int
    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    state: str  # scheduled, queued, running, done, failed, cancelled, dead
    priority: str  # high, normal, low
    background: bool
    door: str  # the protocol that submitted it
    submitted_at: float
    run_at: float | None
    started_at: float | None
    finished_at: float | None
    attempts: int
    timeout: float  # seconds a worker may take; 0: no limit
    worker: JsonBytes  # who runs it or ran it last
    worker_door: str
    numerator: float | None  # progress, while it runs
    denominator: float | None
    code: int
    reason: str
    payload: JsonBytes | None  # null: no longer kept
    payload_size: int | None
    result: JsonBytes | None
    result_size: int | None
    trials: list[AttemptView] = []


class WorkerView(msgspec.Struct, frozen=True):
    """A worker that is connected."""

    id: int
    name: JsonBytes
    door: str
    peer: str
    since: float
    functions: list[JsonBytes]  # at most the first hundred
    function_count: int
    idle: bool  # waits for work
    running: list[JsonBytes]  # handles, at most the first hundred
    running_since: float | None  # of the job that runs longest


class ScheduleView(msgspec.Struct, frozen=True):
    """A schedule that the server keeps."""

    name: str
    expression: str  # five cron fields
    timezone: str
    function: JsonBytes
    payload: JsonBytes
    priority: str
    unique: bool  # a run is left out while the one before it is not over
    paused: bool
    next_at: float | None
    last_at: float | None
    last_handle: JsonBytes


class Latency(msgspec.Struct, frozen=True):
    """Seconds, over the last minute; null where nothing happened."""

    p50: float | None
    p95: float | None
    p99: float | None


class Overview(msgspec.Struct, frozen=True):
    """The whole server at a glance."""

    now: float
    uptime: float
    queued: int
    running: int
    scheduled: int
    dead: int
    functions: int
    workers: int
    connections: int
    submitted: int  # since the start, as are the next two
    completed: int
    failed: int
    submitted_rate: float  # a second, over the last few
    completed_rate: float
    oldest: float | None  # when the job that waits longest, over all functions, was ready to run
    wait: Latency  # from ready to run until a worker has it
    run: Latency  # from then until it is over


class Sample(msgspec.Struct, frozen=True):
    """One point of the charts."""

    at: float
    submitted: float  # a second
    completed: float
    failed: float
    queued: int
    running: int


class DoorView(msgspec.Struct, frozen=True):
    """An address that is listened on."""

    protocol: str
    address: str
    connections: int  # of the protocol, over all its addresses


class StoreView(msgspec.Struct, frozen=True):
    """Where jobs are kept."""

    url: str
    durable: bool
    size: int | None  # bytes on disk
    pending: int  # changes that are not durable yet
    commits: int
    commit_p50: float | None  # seconds until a batch is on disk
    commit_p99: float | None


class System(msgspec.Struct, frozen=True):
    """What runs, and on what."""

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
    """A moment in the life of a job, for `geartrain tail` and the live pages."""

    at: float
    what: str  # submitted, started, progress, requeued, scheduled, done, failed, cancelled, dead
    handle: JsonBytes
    function: JsonBytes
    door: str
    worker: JsonBytes = ""
    reason: str = ""


class BulkReport(msgspec.Struct, frozen=True):
    """What an action on many jobs did."""

    done: int
    refused: int  # jobs that were not in a state for it any more
    more: bool  # there are more that fit: ask again


class Problem(msgspec.Struct, frozen=True):
    """Why something was not done."""

    kind: str  # bad-request, not-found, conflict, unsupported
    text: str


PRIORITIES: Final = tuple(priority.name.lower() for priority in Priority)
STATES: Final = tuple(state.name.lower() for state in JobState)
LISTED_BYTES: Final = 256  # of a payload or a result, in a list
SHOWN_BYTES: Final = 64 * 1024  # of the same, when one job is asked for; the whole can be had as bytes
_NAMES_SHOWN: Final = 100


def function_view(engine: Engine, found: Function) -> FunctionView:
    """A function."""
    return FunctionView(
        jsonbytes.encode(found.name), found.queued, found.running, found.scheduled,
        engine.dead_counts.get(found.name, 0),
        found.workers, found.paused, found.limits, found.oldest_ready_at() or None, found.submitted, found.completed,
        found.failed,
    )  # fmt: skip


def worker_view(found: Worker) -> WorkerView:
    """A worker."""
    running = found.running.jobs()
    started = [job_view.started_at for job_view in running]
    return WorkerView(
        found.number, jsonbytes.encode(found.name), found.door, found.peer, found.since,
        [jsonbytes.encode(name) for name in islice(found.abilities, _NAMES_SHOWN)], len(found.abilities), found.idle,
        [jsonbytes.encode(job_view.handle) for job_view in running[:_NAMES_SHOWN]], min(started, default=None),
    )  # fmt: skip


def job_view(found: LiveJob, longest: int, result: bytes | None = None, finished_at: float | None = None) -> JobView:
    """A job that is not over, or has just ended with this result."""
    owner = found.owner
    if found.state is JobState.DEAD and found.failed_attempts:
        finished_at = found.failed_attempts[-1].ended_at
    progress = found.progress
    return JobView(
        found.id, jsonbytes.encode(found.handle), jsonbytes.encode(found.function),
        jsonbytes.encode(found.unique), STATES[found.state],
        PRIORITIES[found.priority], found.background, found.door, found.submitted_at,
        found.run_at, found.started_at or None, finished_at, found.attempts, found.timeout,
        jsonbytes.encode(owner.name) if owner is not None else "", owner.door if owner is not None else "",
        progress.numerator if progress is not None else None, progress.denominator if progress is not None else None,
        found.code or (GIVEN_UP if found.state is JobState.DEAD else 0), found.reason,
        jsonbytes.encode(found.payload, longest), len(found.payload),
        None if result is None else jsonbytes.encode(result, longest), None if result is None else len(result),
        _trials(found.failed_attempts or []),
    )  # fmt: skip


def record_view(found: Record, longest: int) -> JobView:
    """A job that is over. Its payload is not kept, and perhaps not all of its result."""
    return JobView(
        found.id, jsonbytes.encode(found.handle), jsonbytes.encode(found.function),
        jsonbytes.encode(found.unique), STATES[found.state],
        PRIORITIES[found.priority], True, found.door, found.submitted_at, None,
        found.started_at or None, found.finished_at, found.attempts, 0.0,
        jsonbytes.encode(found.worker), found.worker_door,
        None, None, found.code, found.reason, None, None, jsonbytes.encode(found.result, longest), len(found.result),
        _trials(unpack_attempts(found.failed_attempts)),
    )  # fmt: skip


def _trials(trials: list[Attempt]) -> list[AttemptView]:
    return [AttemptView(*trial[:3], jsonbytes.encode(trial.worker), trial.why) for trial in trials]
