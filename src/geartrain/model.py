"""Plain data that every package uses: jobs, their states and options, and the records of finished jobs."""

import enum
import json
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from mypy_extensions import i16, i32, i64, mypyc_attr

from geartrain.errors import ColdJobError


class Priority(enum.IntEnum):
    """A worker gets high before normal before low, over all the functions that it offers."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


class JobState(enum.IntEnum):
    """The state of a job; `engine/lifecycle.py` has the table of allowed transitions."""

    SCHEDULED = 0  # waits for `run_at`
    QUEUED = 1  # waits for a worker
    RUNNING = 2  # assigned to a worker
    DONE = 3
    FAILED = 4  # reported by the worker, or timed out
    CANCELLED = 5  # by a client or operator, or because no client waited for a foreground job any more
    DEAD = 6  # gave up after too many attempts; kept with a reason until an operator retries or deletes it
    EXPIRED = 7  # no worker got it before `expires_at`
    RESERVING = 8  # waits until its unique key is known to be free at all servers of a cluster
    BLOCKED = 9  # waits for other jobs to end


class Duplicate(enum.Enum):
    """How to treat a submission whose unique key belongs to a job that waits or runs."""

    COALESCE = "coalesce"  # join that job
    REPLACE = "replace"  # overwrite that job while it waits; join it while it runs


class Expiry(enum.Enum):
    """What happens to a job that exceeds the timeout of its worker."""

    FAIL = "fail"
    REQUEUE = "requeue"


class FailureAction(enum.Enum):
    """What becomes of a background job that failed."""

    KEEP = "keep"  # its record is kept with the payload, so that it can be retried
    DEAD = "dead"  # it is a dead job
    FORGET = "forget"  # only its record is kept


class Attempt(NamedTuple):
    """A failed attempt: a worker had the job and did not end it."""

    started_at: float
    ended_at: float
    door: str  # protocol of the worker
    worker: bytes  # the worker's name
    reason: str


@mypyc_attr(acyclic=True)
class RareFields:
    """What few jobs have. The others have no object of this class, and are smaller by all of it."""

    __slots__ = ("code", "count", "expires_at", "failed_attempts", "keep_for", "reason", "reducer")

    def __init__(self) -> None:
        self.expires_at = 0.0
        self.keep_for = 0.0
        self.count = 0
        self.reducer = b""
        self.reason = ""
        self.code = 0
        self.failed_attempts: list[Attempt] | None = None


_COLON: Final = ord(":")


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Job:
    """A unit of work as it is submitted, stored and listed.

    `engine.job.LiveJob` extends it with references that only exist in memory: the worker, the watchers.

    A job is *cold* while its payload is on disk only; the others are warm. Then the size of the payload is known, and
    nothing of the handle is in memory but what it shares with others.

    >>> job = Job(7, b"H:host:7", b"resize", b"", b"cat.png", Priority.NORMAL, True, 5.0, 5.0, "gearman")
    >>> job.state.name, job.attempts, job.keeps_result
    ('QUEUED', 0, True)
    >>> job.chill(b"H:host:")
    >>> job.is_cold, job.payload_size, job.handle
    (True, 7, b'H:host:7')
    >>> job.warm(b"cat.png")
    >>> job.is_cold, job.payload
    (False, b'cat.png')
    """

    __slots__ = (
        "_handle",
        "_payload",
        "_size",
        "after",
        "attempts",
        "background",
        "door",
        "function",
        "id",
        "keeps_result",
        "partition",
        "priority",
        "rare",
        "run_at",
        "state",
        "submitted_at",
        "timeout",
        "unique",
        "user",
    )

    def __init__(
        self,
        id: int,
        handle: bytes,
        function: bytes,
        unique: bytes,
        payload: bytes,
        priority: int,
        background: bool,
        run_at: float,
        submitted_at: float,
        door: str,
    ) -> None:
        # Compiled, attributes lie in this order: three small ones at the beginning share a word, and so do the last one
        # and the first one of LiveJob.
        self.background = background  # durable, and runs although no client waits for it
        self.keeps_result = True  # false: the submitter does not want the result, so its record has none
        self.priority: i16 = priority  # a Priority as a plain int, because it indexes lists
        self.id = id  # increases by one per job, never reused
        self._handle = handle  # of a cold job, the part before its id if that ends in a colon
        self.function = function
        self.unique = unique  # unique key within the function; empty: none
        self._payload: bytes | None = payload  # None: it is on disk only
        self.run_at = run_at  # epoch seconds; when it may run, and its position in the queue
        self.submitted_at = submitted_at
        self.door = door  # protocol of the submitter
        self.state = JobState.QUEUED
        self.attempts = 0  # how often a worker got it since it was submitted, rescheduled by a worker, or retried
        self.timeout = 0.0  # seconds that a worker may take; 0: no limit
        self.partition = b""  # tenant, account or host: partitions of a function take turns; empty: none
        self.after = b""  # the jobs that it waited for when it was submitted, see `pack_parents`; empty: none
        self.user = ""  # name of the user that submitted it; empty: a peer that is no user
        self.rare: RareFields | None = None  # None: the properties below have their defaults
        self._size: i32 = len(payload)  # of the payload

    @property
    def handle(self) -> bytes:
        """It identifies the job for clients and workers."""
        handle = self._handle
        if self._payload is None and handle[-1] == _COLON:
            return handle + b"%d" % self.id
        return handle

    @handle.setter
    def handle(self, handle: bytes) -> None:
        self._handle = handle

    @property
    def payload(self) -> bytes:
        """The payload of a warm job. A job that a worker gets is warm; who may meet others asks `is_cold` first."""
        payload = self._payload
        if payload is None:
            raise ColdJobError(f"the payload of job {self.id} is on disk")
        return payload

    @payload.setter
    def payload(self, payload: bytes) -> None:
        self._payload = payload
        self._size = len(payload)

    @property
    def payload_in_memory(self) -> bytes | None:
        """The payload; None if the job is cold."""
        return self._payload

    @property
    def payload_size(self) -> i64:
        """The number of bytes of the payload, wherever it is."""
        return i64(self._size)

    @property
    def is_cold(self) -> bool:
        """Whether the payload is on disk only."""
        return self._payload is None

    def chill(self, handle_prefix: bytes) -> None:
        """Drop the payload, which is on disk; of a handle that is this prefix and the id, keep the prefix."""
        handle = self.handle
        if handle[-1] == _COLON:
            return  # a handle that ends like a prefix, which no server makes: the job stays warm
        if handle == handle_prefix + b"%d" % self.id:
            self._handle = handle_prefix
        self._payload = None

    def leave_payload(self, size: int) -> None:
        """Make a job cold that was read without its payload of this size. Its handle does not end in a colon."""
        self._payload = None
        self._size = size

    def warm(self, payload: bytes) -> None:
        """The payload was read."""
        self._handle = self.handle
        self._payload = payload
        self._size = len(payload)

    def rare_fields(self) -> RareFields:
        """The fields that few jobs have, made on first use."""
        rare = self.rare
        if rare is None:
            rare = self.rare = RareFields()
        return rare

    @property
    def expires_at(self) -> float:
        """Epoch seconds; no worker gets it from then on, and it ends as expired; 0: never."""
        return 0.0 if self.rare is None else self.rare.expires_at

    @expires_at.setter
    def expires_at(self, expires_at: float) -> None:
        if expires_at or self.rare is not None:
            self.rare_fields().expires_at = expires_at

    @property
    def keep_for(self) -> float:
        """Seconds that its record is kept at least; 0: as long as the settings say."""
        return 0.0 if self.rare is None else self.rare.keep_for

    @keep_for.setter
    def keep_for(self, keep_for: float) -> None:
        if keep_for or self.rare is not None:
            self.rare_fields().keep_for = keep_for

    @property
    def count(self) -> int:
        """Sum of the steps that workers gave when they rescheduled it."""
        return 0 if self.rare is None else self.rare.count

    @count.setter
    def count(self, count: int) -> None:
        if count or self.rare is not None:
            self.rare_fields().count = count

    @property
    def reducer(self) -> bytes:
        """Gearman's map/reduce: stored and passed on."""
        return b"" if self.rare is None else self.rare.reducer

    @reducer.setter
    def reducer(self, reducer: bytes) -> None:
        if reducer or self.rare is not None:
            self.rare_fields().reducer = reducer

    @property
    def reason(self) -> str:
        """Why it failed or is dead."""
        return "" if self.rare is None else self.rare.reason

    @reason.setter
    def reason(self, reason: str) -> None:
        if reason or self.rare is not None:
            self.rare_fields().reason = reason

    @property
    def code(self) -> int:
        """Failure code of the worker, 1 to 255; 0: it has not failed. Not stored with the job."""
        return 0 if self.rare is None else self.rare.code

    @code.setter
    def code(self, code: int) -> None:
        if code or self.rare is not None:
            self.rare_fields().code = code

    @property
    def failed_attempts(self) -> list[Attempt] | None:
        """The latest ones."""
        return None if self.rare is None else self.rare.failed_attempts

    @failed_attempts.setter
    def failed_attempts(self, failed_attempts: list[Attempt] | None) -> None:
        if failed_attempts is not None or self.rare is not None:
            self.rare_fields().failed_attempts = failed_attempts


_MAX_DIGITS: Final = 18  # of an id; more would not fit into 64 bits


def id_from_handle(handle: bytes) -> int:
    """Return the id at the end of a handle, or 0.

    >>> id_from_handle(b"H:host:7"), id_from_handle(b"H:host:"), id_from_handle(b"7")
    (7, 0, 7)
    """
    digits = handle[handle.rfind(b":") + 1 :]
    return int(digits) if len(digits) <= _MAX_DIGITS and digits.isdigit() else 0


class Record(NamedTuple):
    """A finished background job, as it is kept for operators and for clients that ask later."""

    id: int
    handle: bytes
    function: bytes
    unique: bytes
    priority: int
    state: int  # a JobState: done, failed, cancelled or expired
    submitted_at: float
    started_at: float  # of the last attempt; 0: no worker had it
    finished_at: float
    attempts: int
    door: str  # protocol of the submitter
    worker_door: str  # protocol of the worker; empty: no worker had it
    worker: bytes  # name of the worker
    code: int  # 0: success; else the failure code that the worker gave
    reason: str  # why it failed or was cancelled
    result: bytes  # all of it, or its beginning if there is a `result_size`
    failed_attempts: bytes = b""  # see `pack_attempts`
    keeps_result: bool = True  # false: the submitter did not want the result, and `result` is empty
    result_size: int = 0  # of a result that is not all in `result`; 0: `result` is all of it
    result_kept: int = 0  # how many bytes of such a result the store has, from the first on
    keep_until: float = 0.0  # no limit removes the record before this time; 0: the limits apply
    remove_at: float = 0.0  # the record is removed at this time, whatever the limits; 0: the limits apply
    progress: str = ""  # see `pack_progress`

    @property
    def full_size(self) -> int:
        """The size of the result that the worker sent, whatever is kept of it."""
        return self.result_size or len(self.result)

    @property
    def kept_size(self) -> int:
        """How many bytes of the result can be read."""
        return self.result_kept if self.result_size else len(self.result)


class FailedPayload(NamedTuple):
    """The payload of a failed job: its size, and the beginning of it or all of it."""

    size: int
    data: bytes


class LockChange(NamedTuple):
    """A job asks for a lock, or releases it."""

    name: bytes
    job: int
    limit: int  # how many jobs may hold it at once; 0: the job releases it


class LockUse(NamedTuple):
    """How much of a lock is in use."""

    holders: int
    limit: int  # the largest that one of them asked for


class Parents(NamedTuple):
    """The jobs that another one waits for."""

    ids: tuple[int, ...]
    runs_anyway: bool  # it runs although one of them failed; otherwise it is cancelled


_ONE_PARENT: Final = struct.Struct(">Bq")  # for a chain: nearly every job that waits has one parent


def pack_parents(ids: Iterable[int], runs_anyway: bool) -> bytes:
    """Encode the jobs that another one waits for; empty means none.

    >>> unpack_parents(pack_parents([8, 7, 8], runs_anyway=True))
    Parents(ids=(7, 8), runs_anyway=True)
    >>> pack_parents([], runs_anyway=True)
    b''
    """
    unique = sorted(set(ids))
    if len(unique) == 1:
        return _ONE_PARENT.pack(runs_anyway, unique[0])
    return struct.pack(f">B{len(unique)}q", runs_anyway, *unique) if unique else b""


def unpack_parents(packed: bytes) -> Parents:
    """Decode what `pack_parents` made; raise ValueError if it did not."""
    if not packed:
        return Parents((), False)
    if len(packed) % 8 != 1 or packed[0] > 1:
        raise ValueError("the jobs that it waits for cannot be read")
    if len(packed) == _ONE_PARENT.size:
        return Parents((_ONE_PARENT.unpack(packed)[1],), packed[0] == 1)
    return Parents(struct.unpack(f">{len(packed) // 8}q", packed[1:]), packed[0] == 1)


def runs_anyway(packed: bytes) -> bool:
    """Whether a job runs although one that it waited for failed.

    >>> runs_anyway(pack_parents([7], runs_anyway=True)), runs_anyway(b"")
    (True, False)
    """
    return len(packed) > 0 and packed[0] == 1


def pack_progress(numerator: int, denominator: int, seconds_left: int) -> str:
    """Encode the last progress of a job for a store; empty means that there was none.

    >>> unpack_progress(pack_progress(1, 2, 30)), unpack_progress("")
    ((1, 2, 30), None)
    """
    return f"{numerator}/{denominator}/{seconds_left}"


def unpack_progress(packed: str) -> tuple[int, int, int] | None:
    """Numerator, denominator and the seconds left; None if there was no progress, or if it cannot be read."""
    parts = packed.split("/")
    if len(parts) != 3:
        return None
    try:
        return int(parts[0]), int(parts[1]), int(parts[2])
    except ValueError:
        return None


def pack_attempts(attempts: list[Attempt] | None) -> bytes:
    """Encode failed attempts for a store: empty, or JSON.

    >>> unpack_attempts(pack_attempts([Attempt(1.0, 2.0, "gearman", b"bob", "worker disconnected")]))
    [Attempt(started_at=1.0, ended_at=2.0, door='gearman', worker=b'bob', reason='worker disconnected')]
    """
    if not attempts:
        return b""
    rows = [(*attempt[:3], attempt.worker.decode("latin-1"), attempt.reason) for attempt in attempts]
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack_attempts(data: bytes) -> list[Attempt]:
    """Decode `pack_attempts`. Invalid data is ignored: a job must not be lost because its history is damaged."""
    if not data:
        return []
    try:
        rows = json.loads(data)
        return [
            Attempt(float(started_at), float(ended_at), str(door), str(worker).encode("latin-1"), str(reason))
            for started_at, ended_at, door, worker, reason in rows
        ]
    except (ValueError, TypeError, RecursionError):
        return []
