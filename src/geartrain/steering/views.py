"""What people and programs are shown of the server; these are the JSON objects of the API and of `--json`.

Times are seconds of the epoch, null where there was none. Bytes that are text are shown as text; others as
`{"base64": "..."}`.
"""

from typing import Generic, TypeVar

import msgspec

V = TypeVar("V")


class Raw(msgspec.Struct, frozen=True):
    """Bytes that are no text."""

    base64: bytes  # msgspec writes bytes as base64


Text = str | Raw


def text(data: bytes, longest: int = 0) -> Text:
    """Bytes as they are shown; `longest` cuts them, 0 does not.

    >>> text(b"hello"), text(b"\\xff")
    ('hello', Raw(base64=b'\\xff'))
    """
    if longest:
        data = data[:longest]
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if longest and error.start >= len(data) - 3 and error.reason == "unexpected end of data":
            return data[: error.start].decode()  # the cut went through a character
        return Raw(data)


def raw(shown: Text) -> bytes:
    """The bytes that are shown so."""
    return shown.base64 if isinstance(shown, Raw) else shown.encode()


class Page(msgspec.Struct, Generic[V], frozen=True):
    """Part of a list; `after` asks for the next part, and is empty at the end."""

    items: list[V]
    after: str = ""
    total: int | None = None  # how many there are in all, where that is known without counting


class FunctionView(msgspec.Struct, frozen=True):
    """A function, its queue, and what became of its jobs since the start."""

    name: Text
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


class TrialView(msgspec.Struct, frozen=True):
    """An attempt that did not end the job."""

    started_at: float
    ended_at: float
    door: str
    worker: Text
    why: str


class JobView(msgspec.Struct, frozen=True):
    """A job, alive, dead or over. Lists cut `payload` and `result`; the sizes are always the whole."""

    id: int
    handle: Text
    function: Text
    unique: Text
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
    worker: Text  # who runs it or ran it last
    worker_door: str
    numerator: float | None  # progress, while it runs
    denominator: float | None
    code: int
    reason: str
    payload: Text | None  # null: no longer kept
    payload_size: int | None
    result: Text | None
    result_size: int | None
    trials: list[TrialView] = []


class WorkerView(msgspec.Struct, frozen=True):
    """A worker that is connected."""

    id: int
    name: Text
    door: str
    peer: str
    since: float
    functions: list[Text]  # at most the first hundred
    function_count: int
    idle: bool  # waits for work
    running: list[Text]  # handles, at most the first hundred
    running_since: float | None  # of the job that runs longest


class CronView(msgspec.Struct, frozen=True):
    """A schedule that the server keeps."""

    name: str
    expression: str  # five cron fields
    timezone: str
    function: Text
    payload: Text
    priority: str
    unique: bool  # a run is left out while the one before it is not over
    paused: bool
    next_at: float | None
    last_at: float | None
    last_handle: Text


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
    handle: Text
    function: Text
    door: str
    worker: Text = ""
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
