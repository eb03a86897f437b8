"""The contract of a store.

A store holds the background jobs that are not finished (dead ones included) by id, records of finished jobs, failed
jobs as a whole beside their records, logs of jobs, and a few values saved under names. It receives changes in batches.
A batch is durable as a whole when `commit` returns; if it raises StoreError nothing of it is, and it may be committed
again.

A store belongs to one server from `open` to `close`. One that several servers share is a `SharedStore`: it hands out
disjoint ranges of ids, and `jobs` returns only those of the ranges that this server has. `cluster/` is built on it.

`open`, `jobs` and `close` are called before and after serving. While serving, one thread of the server calls `commit`
and `prune`, and any thread `records`. The event loop never calls them, so they may block.
"""

from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from geartrain.model import FailedPayload, Job, JobState, pack_attempts
from geartrain.model import Record as Record

if TYPE_CHECKING:
    from geartrain.store.memory import MemoryRecord

J = TypeVar("J", bound=Job)


class Batch:
    """The changes that one commit makes durable, in the order in which they happened to each job.

    Records are removed before others are added: a failed job is only retried when its record is durable.
    """

    __slots__ = (
        "accepted",
        "changed",
        "failed",
        "finished",
        "ids_until",
        "is_whole",
        "known_node",
        "logs",
        "removed_jobs",
        "removed_records",
        "restored",
        "revived",
        "saved_values",
    )

    def __init__(self) -> None:
        self.accepted: list[tuple[object, ...]] = []  # from `new_row`: new jobs
        self.revived: list[tuple[object, ...]] = []  # from `row`: jobs that were dead or failed, and are queued again
        self.changed: list[tuple[object, ...]] = []  # from `row`; each replaces an older row of its id
        self.removed_jobs: list[int] = []  # ids of jobs that are removed without a record
        self.known_node = 0  # of a shared store: the newest one that this server knows of
        self.is_whole = False  # a shared store went back in time: `changed` has every job that the server has
        # Of a batch that is whole: ranges of ids, from one to below another, that were taken over from other servers.
        # `changed` has all jobs in them, and all that this server has given ids to.
        self.restored: Sequence[tuple[int, int]] = ()
        self.finished: list[Record] = []  # the jobs with these ids are finished
        self.failed: list[tuple[object, ...]] = []  # from `row`: those of them that are kept whole
        self.removed_records: list[int] = []  # ids of jobs: what is kept of them is removed
        self.logs: list[tuple[int, bytes]] = []  # ids of jobs, and the lines that are added to their logs
        self.saved_values: dict[str, bytes] = {}  # each replaces an older value of its name
        self.ids_until = 0  # ids below this are reserved: no later start hands them out; 0: no change

    def __bool__(self) -> bool:
        return bool(self.finished or self.is_whole or not self.only_ends_jobs)

    @property
    def saved_jobs(self) -> list[tuple[object, ...]]:
        """Every row of a job, in the order in which they replace each other."""
        if not self.changed and not self.revived:
            return self.accepted
        return [*self.accepted, *self.revived, *self.changed]

    @property
    def is_one_job(self) -> bool:
        """Whether nothing is in it but one job that was accepted."""
        return len(self.accepted) == 1 and not (
            self.finished
            or self.failed
            or self.changed
            or self.revived
            or self.removed_jobs
            or self.removed_records
            or self.logs
            or self.saved_values
            or self.ids_until
        )

    @property
    def only_ends_jobs(self) -> bool:
        """Whether nothing but `finished`, and `failed` with it, is in it."""
        return not (
            self.accepted
            or self.changed
            or self.revived
            or self.removed_jobs
            or self.removed_records
            or self.logs
            or self.saved_values
            or self.ids_until
        )

    @property
    def size(self) -> int:
        """The number of changes."""
        return (
            len(self.accepted)
            + len(self.revived)
            + len(self.changed)
            + len(self.finished)
            + len(self.removed_jobs)
            + len(self.removed_records)
            + len(self.logs)
            + len(self.saved_values)
        )

    def rejoin(self, later: "Batch", without: Set[int]) -> None:
        """Put this batch, which could not be committed, before a later one, leaving out the jobs with these ids."""
        for name in ("accepted", "revived", "changed", "failed"):
            rows = (*getattr(self, name), *getattr(later, name))
            setattr(later, name, [row for row in rows if row[0] not in without])
        later.finished = [record for record in (*self.finished, *later.finished) if record.id not in without]
        later.removed_jobs = [*self.removed_jobs, *later.removed_jobs]
        later.removed_records = [*self.removed_records, *later.removed_records]
        later.logs = [log for log in (*self.logs, *later.logs) if log[0] not in without]
        later.saved_values = {**self.saved_values, **later.saved_values}


class Twin(NamedTuple):
    """A job of another server that has the unique key of a job of ours."""

    id: int
    handle: bytes


class CommitOutcome(NamedTuple):
    """What a commit found out. Of a store that belongs to one server it is always `COMMITTED`."""

    twins: dict[int, Twin]  # by the id of a job of the batch: it was not saved, because this one has its unique key
    first_id: int = 0  # of a new range of ids; 0: the ids go on
    version: int = 0  # of the saved values of the batch; 0: there were none


COMMITTED: Final = CommitOutcome({})


DONE: Final = int(JobState.DONE)
FAILED: Final = int(JobState.FAILED)
# The state of a row that only has the unique key of a foreground job. No job has it: one that is reserving, and is
# written again before its key is known to be its own, must not be taken for such a row.
RESERVED: Final = 100


class ResultLimits(NamedTuple):
    """How much of the results of finished jobs, and of the payloads of failed ones, a store keeps."""

    inline: int = 64 * 1024  # bytes of a result that are part of its record; the rest is stored apart
    largest: int = 16 * 1024 * 1024  # bytes of one result; more are cut
    total: int = 1024**3  # bytes of all the rests together; the oldest are removed first
    total_in_memory: int = 64 * 1024 * 1024  # the same, of the memory store
    failed: int = 1024**3  # bytes of the payloads of all failed jobs; the oldest are removed first
    failed_in_memory: int = 64 * 1024 * 1024  # the same, of the memory store
    logs: int = 256 * 1024 * 1024  # bytes of the logs of all jobs; the oldest are removed first
    logs_in_memory: int = 16 * 1024 * 1024  # the same, of the memory store


class Quota(NamedTuple):
    """How long, and how many, records of one kind are kept."""

    seconds: float
    most: int


class Retention(NamedTuple):
    """The quotas of records. Those of failed jobs are apart, so that many successful jobs do not displace them."""

    done: Quota  # of done and cancelled jobs
    failed: Quota


class Query(NamedTuple):
    """Which records to return: those that match every condition that is set, the last that finished first.

    >>> query = Query(function=b"resize", since=100.0)
    >>> old = Record(1, b"H:host:1", b"resize", b"", 1, 3, 1.0, 2.0, 99.0, 1, "gearman", "gearman", b"", 0, "", b"")
    >>> query.matches(old), query.matches(old._replace(finished_at=100.0))
    (False, True)
    """

    handle: bytes = b""
    function: bytes = b""
    state: int = -1
    since: float = 0.0  # finished at or after
    until: float = 0.0  # finished before; 0: no bound
    limit: int = 100
    search: bytes = b""  # substring of the handle, function, unique key or reason, or of a payload that is kept
    door: str = ""  # protocol of the submitter
    below: int = 0  # only ids below this; 0: no bound
    by_id: bool = False  # the highest id first, instead
    least: int = 0  # only ids from this one on

    def matches(self, record: "Record | MemoryRecord", payload: bytes = b"") -> bool:
        """Whether a record meets the conditions; `payload` is that of a failed job that is kept whole."""
        return (
            (not self.handle or record.handle == self.handle)
            and (not self.function or record.function == self.function)
            and (self.state < 0 or record.state == self.state)
            and record.finished_at >= self.since
            and (not self.until or record.finished_at < self.until)
            and (not self.below or record.id < self.below)
            and (not self.least or record.id >= self.least)
            and (not self.door or record.door == self.door)
            and (not self.search or any(self.search in text for text in (*_searchable(record), payload)))
        )


def _searchable(record: "Record | MemoryRecord") -> tuple[bytes, ...]:
    return (record.handle, record.function, record.unique, record.reason.encode())


class Store(Protocol):
    """The interface of every store; tests/contract/stores tests it."""

    durable: bool  # whether committed data survives the process

    def open(self) -> int:
        """Acquire the store for this server, or raise StoreError; return the first id that was never reserved."""

    def jobs(self, kind: type[J]) -> Iterator[J]:
        """Every unfinished job by id, created as `kind`, so that a million jobs need not be copied afterwards.

        Rows that cannot be read are quarantined and logged, never raised.
        """

    def saved_values(self) -> dict[str, bytes]:
        """Every value that was saved under a name."""

    def commit(self, batch: Batch) -> CommitOutcome:
        """Make a batch durable as a whole, or raise StoreError."""

    def records(self, query: Query) -> list[Record]:
        """Records of finished jobs, with at least the first `ResultLimits.inline` bytes of their results."""

    def kept_result(self, record: Record) -> bytes:
        """All that is kept of the result of a record; shorter than `record.full_size` if it was cut or removed."""

    def job_log(self, id: int) -> bytes:
        """The log of a job; empty if nothing was added to it, or it was removed, as it is with the job's record."""

    def payloads(self, ids: Sequence[int], longest: int) -> dict[int, FailedPayload]:
        """The payloads of the failed jobs with these ids that are kept whole, with at most `longest` bytes of each."""

    def failed_jobs(self, ids: Sequence[int], kind: type[J], most_bytes: int) -> list[J | None]:
        """The failed jobs with these ids, created as `kind`; None for one that is not kept whole.

        It stops after a job with which the payloads exceed `most_bytes`, so the list may be shorter than `ids`.
        """

    def ends(self, first: int, last: int) -> dict[int, JobState]:
        """How those jobs with ids in this range have ended that have a record, by id."""

    def prune(self, now: float, retention: Retention) -> int:
        """Remove some records that exceed the quotas; return how many, 0 if none are left to remove."""

    def close(self, next_id: int) -> None:
        """Release the store; ids from `next_id` on were not used."""


# How much of the log of one job a store keeps: the end of it.
LOG_BYTES: Final = 64 * 1024
LOG_LINES: Final = 1000
_LOG_WAS_CUT: Final = b"(earlier lines were removed)\n"


def extended_log(log: bytes, added: bytes) -> bytes:
    """A log with more lines at its end, without the earliest ones that exceed the limits.

    >>> extended_log(b"one\\n", b"two\\n")
    b'one\\ntwo\\n'
    >>> extended_log(b"one\\n" * LOG_LINES, b"two\\n")[-8:]
    b'one\\ntwo\\n'
    """
    log += added
    if len(log) <= LOG_BYTES and log.count(b"\n") <= LOG_LINES:
        return log
    kept = log[-(LOG_BYTES - len(_LOG_WAS_CUT)) :]
    if len(kept) < len(log):
        kept = kept.partition(b"\n")[2]  # the first line may be a part of one
    return _LOG_WAS_CUT + b"\n".join(kept.split(b"\n")[-LOG_LINES:])


# The columns of a job. All stores use this order, so the event loop builds a row once and it is stored as it is.
COLUMNS: Final[tuple[str, ...]] = (
    "id", "handle", "function", "unique_key", "payload", "priority", "state", "run_at", "submitted_at",
    "attempts", "count", "timeout", "reducer", "door", "reason", "trials",
    "keeps_result", "keep_for", "expires_at", "user_name", "partition_name", "after_jobs",
)  # fmt: skip

# The columns of a short row, of a job of which nothing else is unusual. Most new jobs are like that, and a row with
# half as many values costs half as much.
SHORT_COLUMNS: Final[tuple[str, ...]] = (
    "id", "handle", "function", "unique_key", "payload", "priority", "state", "run_at", "submitted_at", "door",
)  # fmt: skip

# The columns of a record: the fields of Record in their order, two of them under older names.
_COLUMN_OF = {"unique": "unique_key", "failed_attempts": "trials"}
RECORD_COLUMNS: Final[tuple[str, ...]] = tuple(_COLUMN_OF.get(name, name) for name in Record._fields)


def key_row(job: Job) -> tuple[object, ...]:
    """What other servers must know of a foreground job with a unique key: not its payload, nor what it is about."""
    return (
        job.id, job.handle, job.function, job.unique, b"", job.priority, RESERVED, 0.0,
        job.submitted_at, 0, 0, 0.0, b"", job.door, "", b"", False, 0.0, 0.0, "", b"", b"",
    )  # fmt: skip


def row(job: Job) -> tuple[object, ...]:
    """Copy a job as it is now; the event loop may change the job while the batch is being written."""
    return (
        job.id, job.handle, job.function, job.unique, job.payload_in_memory, job.priority, job.state, job.run_at,
        job.submitted_at, job.attempts, job.count, job.timeout, job.reducer, job.door, job.reason,
        pack_attempts(job.failed_attempts), job.keeps_result, job.keep_for,
        job.expires_at, job.user, job.partition, job.after,
    )  # fmt: skip


def new_row(job: Job) -> tuple[object, ...]:
    """The row of a new job: a short one, if nothing is lost by that."""
    if (
        job.rare is not None
        or not job.keeps_result
        or job.attempts
        or job.timeout
        or job.user
        or job.partition
        or job.after
        or job.is_cold
    ):
        return row(job)
    return (
        job.id, job.handle, job.function, job.unique, job.payload_in_memory, job.priority, job.state, job.run_at,
        job.submitted_at, job.door,
    )  # fmt: skip


def whole_row(row: tuple[object, ...]) -> tuple[object, ...]:
    """A row with all COLUMNS, of one that may be short.

    >>> new = Job(7, b"H:host:7", b"resize", b"", b"cat.png", 1, True, 5.0, 5.0, "gearman")
    >>> len(new_row(new)), whole_row(new_row(new)) == row(new) == whole_row(row(new))
    (10, True)
    """
    if len(row) == len(COLUMNS):
        return row
    return (*row[:-1], 0, 0, 0.0, b"", row[-1], "", b"", True, 0.0, 0.0, "", b"", b"")
