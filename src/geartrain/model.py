"""Plain data that every room understands: what a job is, and the words for its states and choices."""

import enum
import json
from typing import Final, NamedTuple

from mypy_extensions import mypyc_attr


class Priority(enum.IntEnum):
    """High before normal before low, across all the functions a worker offers."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


class JobState(enum.IntEnum):
    """Where a job is in its life; `engine/lifecycle.py` has the table of allowed transitions."""

    SCHEDULED = 0  # waits for its time
    QUEUED = 1  # waits for a worker
    RUNNING = 2  # a worker has it
    DONE = 3
    FAILED = 4  # a worker said so, or its time ran out
    CANCELLED = 5  # somebody said so, or nobody waited for it any more
    DEAD = 6  # given up: set aside with a reason until somebody retries or deletes it


class Duplicate(enum.Enum):
    """What a submission does when its unique key is already queued or running."""

    COALESCE = "coalesce"  # share the job that is there
    REPLACE = "replace"  # overwrite it while it waits; leave it alone while it runs


class Expiry(enum.Enum):
    """What happens to a job that runs longer than it may."""

    FAIL = "fail"
    REQUEUE = "requeue"


class Attempt(NamedTuple):
    """An attempt that did not end its job."""

    started_at: float
    ended_at: float
    door: str  # of the worker
    worker: bytes  # what it called itself
    why: str  # it came to nothing


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Job:
    """A unit of work as it is submitted, kept and listed; everything in it is plain data.

    The engine adds what only a living job has (owner, watchers) in its own subclass.
    """

    __slots__ = (
        "attempts",
        "background",
        "count",
        "door",
        "failed_attempts",
        "function",
        "handle",
        "id",
        "keeps_result",
        "payload",
        "priority",
        "reason",
        "reducer",
        "run_at",
        "state",
        "submitted_at",
        "timeout",
        "unique",
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
        self.id = id  # grows by one per job, never reused
        self.handle = handle  # what clients and workers call it
        self.function = function
        self.unique = unique  # empty: never a duplicate of anything
        self.payload = payload
        self.priority = priority  # a Priority, as a plain int because it indexes tables
        self.background = background  # durable, and lives on without watchers
        self.run_at = run_at  # epoch seconds: when it may run, and its place in the queue
        self.submitted_at = submitted_at
        self.door = door  # the protocol that submitted it
        self.keeps_result = True  # its record has the result; false: its submitter does not want it
        self.state = JobState.QUEUED
        self.attempts = 0  # how many times a worker was given it since its last success
        self.count = 0  # how many steps its workers counted by rescheduling it
        self.timeout = 0.0  # seconds a worker may take; 0 means no limit
        self.reducer = b""  # Gearman's map/reduce: stored and passed on, no more
        self.reason = ""  # why it is dead
        self.failed_attempts: list[Attempt] | None = None  # the last attempts that did not end it


_DIGITS: Final = 18  # of an id, at most


def id_from_handle(handle: bytes) -> int:
    """The id that a handle ends in; 0 where there is none.

    >>> id_from_handle(b"H:host:7"), id_from_handle(b"H:host:"), id_from_handle(b"7")
    (7, 0, 7)
    """
    digits = handle[handle.rfind(b":") + 1 :]
    return int(digits) if len(digits) <= _DIGITS and digits.isdigit() else 0


class Record(NamedTuple):
    """What is kept of a job that is over."""

    id: int
    handle: bytes
    function: bytes
    unique: bytes
    priority: int
    state: int  # a JobState: done, failed or cancelled
    submitted_at: float
    started_at: float  # of the last attempt; 0 if there was none
    finished_at: float
    attempts: int
    door: str  # that submitted it
    worker_door: str  # that ran it; empty if nobody did
    worker: bytes  # what the worker called itself
    code: int  # 0 for success, else what its worker called the failure
    reason: str  # why it did not succeed
    result: bytes  # cut to the store's limit
    failed_attempts: bytes = b""  # packed
    keeps_result: bool = True  # false: the result was not kept, since its submitter did not want it


def pack_attempts(trials: list[Attempt] | None) -> bytes:
    """Trials as they are kept: nothing, or JSON.

    >>> unpack(pack([Trial(1.0, 2.0, "gearman", b"bob", "it left")]))
    [Trial(started_at=1.0, ended_at=2.0, door='gearman', worker=b'bob', why='it left')]
    """
    if not trials:
        return b""
    rows = [(*trial[:3], trial.worker.decode("latin-1"), trial.why) for trial in trials]
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack_attempts(data: bytes) -> list[Attempt]:
    """The same back. What makes no sense is left out: no job is to be lost for the sake of its past."""
    if not data:
        return []
    try:
        rows = json.loads(data)
        return [
            Attempt(float(began), float(ended), str(door), str(worker).encode("latin-1"), str(why))
            for began, ended, door, worker, why in rows
        ]
    except (ValueError, TypeError, RecursionError):
        return []
