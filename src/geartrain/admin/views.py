"""Views: the JSON objects of the HTTP API, of the control function and of `--json`.

Times are in seconds of the epoch, null where there is none. Bytes are written as `jsonbytes` writes them: as a string
where they are UTF-8, otherwise as `{"base64": "..."}`.
"""

import typing
from typing import Annotated, Final, Generic, Literal, TypeVar

import msgspec

from geartrain.jsonbytes import JsonBytes

V = TypeVar("V")

# The names of the states and priorities, in the order of their numbers. OpenAPI has each as a schema of its own.
StateWord = Literal[
    "scheduled", "queued", "running", "done", "failed", "cancelled", "dead", "expired", "reserving",
    "blocked",
]  # fmt: skip
PriorityWord = Literal["high", "normal", "low"]
STATES: Final[tuple[StateWord, ...]] = typing.get_args(StateWord)
PRIORITIES: Final[tuple[PriorityWord, ...]] = typing.get_args(PriorityWord)
StateField = Annotated[StateWord, msgspec.Meta(title="JobState")]
PriorityField = Annotated[PriorityWord, msgspec.Meta(title="Priority")]


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


class RunningLimits(msgspec.Struct, frozen=True):
    """How many jobs of a function may run, and how often one may start; null: not set."""

    max_running: int | None = None  # 0: no limit
    max_running_per_partition: int | None = None  # 0: no limit
    rate: str | None = None  # such as 100/m; none: no limit
    burst: int | None = None  # so many may start at once; null: one
    rate_per_partition: str | None = None
    burst_per_partition: int | None = None
    partition_from_unique: str | None = None  # the partition is what the unique key has before this; none: it is not


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
    running_limits: RunningLimits = RunningLimits()  # that count: what an operator has set, else what code says
    limits_set: list[str] = []  # the names of those that an operator has set
    partitions: int = 0  # that have queued jobs
    blocked: int = 0  # jobs that wait for other jobs
    waits_for: str = ""  # why no queued job is assigned; empty: they are


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
    state: StateField
    priority: PriorityField
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
    numerator: float | None  # progress of a running job; of a workflow, how many of its jobs have ended
    denominator: float | None
    code: int
    reason: str
    payload: JsonBytes | None  # null: not kept, or on disk and not read; a failed job that has one can be retried
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
    server: str = ""  # of a cluster, that has the job; empty: there is one server, or the job has ended
    partition: JsonBytes = ""  # of a job that has not ended; empty: none
    waits_for: str = ""  # why a job is not running; empty: it is, or it has ended
    after: list[JsonBytes] = []  # handles of unfinished jobs that it waits for; the first hundred
    workflow: str | None = None  # the name of a workflow; null: it is an ordinary job


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
    server: str = ""  # of a cluster, that it is connected to; empty: there is one server


class ScheduleView(msgspec.Struct, frozen=True):
    """A schedule."""

    name: str
    expression: str  # cron fields, `@hourly`, `@every 15s`
    timezone: str
    function: JsonBytes
    payload: JsonBytes
    priority: PriorityField
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
    queued_bytes: int  # of all jobs, dead ones included: their payloads in memory, and 512 for each
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
    servers: int = 1  # of the cluster
    unanswered: list[str] = []  # servers whose part is missing, because they have not answered
    blocked: int = 0  # jobs that wait for other jobs


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


class DumpPage(msgspec.Struct, frozen=True):
    """Some lines of a dump."""

    lines: str  # each ends with a newline
    after: str  # for the next page; empty: this is the last one. Of the header: the `dump` of all pages
    skipped: list[str]  # what the format cannot express, and why


class LoadView(msgspec.Struct, frozen=True):
    """The result of loading a dump."""

    jobs: int  # loaded, as the records and values
    records: int
    replaced: int  # of those loaded, how many replaced something
    present: int  # skipped: the server has the same one
    clashing: int  # skipped: another job has its id, its handle or its unique key
    next_id: int  # of the server
    values: int  # schedules, settings of functions, configurations of doors
    notices: list[str]  # about each that clashes


class ReloadView(msgspec.Struct, frozen=True):
    """What a reload has read."""

    users: int  # that can prove who they are, by a token, a certificate or an account
    certificates: list[str]  # the files of the TLS certificates
    closed_connections: int  # of users that were changed or revoked


class ClusterCounts(msgspec.Struct, frozen=True):
    """What this server knows of its cluster, and has done for it since its start."""

    nodes: int  # servers that serve or join
    leads: bool  # whether this server is the leader
    lease_left: float  # seconds until others may take this server for dead; below 0: they may already
    takeovers: int  # ranges of jobs that it took over from servers that were gone
    taken_jobs: int
    fenced: int  # servers that it has fenced
    resynced_jobs: int  # written again, after the database had gone back in time
    in_doubt: dict[str, int]  # commits whose answer was lost, by what had become of them: committed or repeated
    xmin_age: float | None  # seconds since the start of the oldest transaction in the database; null: another one leads
    lent: int = 0  # jobs of this server that run at others
    borrowed: int = 0  # jobs of others that run here
    loans_returned: int = 0  # that came back before a worker had them
    round_trips: dict[str, float] = {}  # by server: seconds that the last message to it and back took


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
    cluster: ClusterCounts | None = None  # null: the store is not shared


class NodeView(msgspec.Struct, frozen=True):
    """One of the servers that share a store. A server that is started again is another node."""

    name: str
    node: int  # never used again
    address: str  # where the other servers reach it; empty: nowhere
    version: str
    state: str  # joining, serving, left or fenced; the last two until others have all its jobs
    leader: bool  # runs schedules and removes old records
    draining: bool  # stops when its running jobs are done
    answers: bool  # the server that answers this request
    started_at: float
    commit_age: float  # seconds since its last commit
    lease_left: float | None  # seconds until others may take it for dead; null, as the rest, if it has not answered
    jobs: int | None  # that it has, dead ones included
    lent: int | None = None  # of its jobs, those that run at other servers
    borrowed: int | None = None  # jobs of other servers that run there
    workers: int | None = None  # that are connected to it
    round_trip: float | None = None  # seconds that a message to it and back takes; null for the one that answers


class JobEvent(msgspec.Struct, frozen=True):
    """Something that happened to a job."""

    at: float
    what: str  # submitted, started, progress, requeued, scheduled, done, failed, cancelled, dead, expired
    handle: JsonBytes
    function: JsonBytes
    door: str
    worker: JsonBytes = ""
    reason: str = ""
    server: str = ""  # of a cluster, that has the job; empty: the one that is asked


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


LISTED_BYTES: Final = 256  # of a payload or a result, in a list
SHOWN_BYTES: Final = 64 * 1024  # of the same, in the view of one job; the verbs payload and result return all
