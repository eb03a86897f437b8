"""What a client submits, and what it receives for it; the same for every protocol."""

import dataclasses
from typing import Any, Final, NamedTuple

from geartrain.model import Priority


@dataclasses.dataclass(slots=True)
class Order:
    """One submission, before a protocol encodes it."""

    function: bytes
    payload: bytes = b""
    background: bool = False  # the server keeps the job, and no client waits for it
    priority: Priority = Priority.NORMAL
    unique: bytes = b""
    run_at: float = 0.0  # epoch seconds; 0: now
    timeout: float = 0.0  # seconds a worker may take; 0: no limit
    expires_at: float = 0.0  # epoch seconds; no worker gets it from then on; 0: it does not expire
    keep_for: float = 0.0  # seconds that the record is kept at least; 0: as the server's settings say
    partition: bytes = b""  # jobs of different partitions of a function take turns; empty: none
    after: tuple[bytes, ...] = ()  # handles of jobs that must end before it runs
    runs_anyway: bool = False  # although one of them failed; otherwise it is cancelled


class Acceptance(NamedTuple):
    """The server's acknowledgement of an order: the names of the job."""

    handle: bytes  # in the protocol's own format; empty where it has none
    function: bytes
    unique: bytes = b""


# How a job gets a partition that its client cannot send, for error messages.
PARTITION_FROM_UNIQUE: Final = (
    "let the server read it from unique keys: geartrain limit FUNCTION --partition-from-unique :"
)

# The states of jobs that have not ended.
LIVING: Final = frozenset({"scheduled", "blocked", "queued", "running"})


class Status(NamedTuple):
    """A job's status at a server."""

    known: bool  # false: the server does not have the job, or it has ended
    running: bool = False
    numerator: float = 0.0  # progress
    denominator: float = 0.0
    # scheduled, blocked, queued, running, done, failed, dead, cancelled or expired; unknown: the server has no record.
    # A server that is not a Geartrain may say queued for a scheduled job, and unknown for one that has ended.
    state: str = "unknown"
    # Why it failed, is dead or was cancelled; of a job that is to run again, why its last attempt failed.
    reason: str = ""

    @classmethod
    def of_view(cls, view: dict[str, Any]) -> "Status":
        """The status in a Geartrain server's view of a job."""
        state = view["state"]
        progress = (view["numerator"] or 0, view["denominator"] or 0)
        attempts = view["trials"]
        reason = view["reason"] or (attempts[-1]["why"] if attempts and state in LIVING else "")
        return cls(state in LIVING, state == "running", *progress, state, reason)


class Capabilities(NamedTuple):
    """What a protocol supports. A call that needs more raises an UnsupportedError."""

    foreground: bool = True
    background: bool = False
    priority: bool = False
    unique: bool = False
    run_at: bool = False
    timeout: bool = False
    expires: bool = False  # a time to live
    keep_for: bool = False  # how long a record is kept
    partition: bool = False  # a tenant, account or host
    after: bool = False  # jobs that must end before it runs
    status: bool = False
    cancel: bool = False
    result_later: bool = False  # the result of a background job can be fetched
    progress: bool = False  # clients receive progress reports
    data: bool = False  # clients receive parts of the result, and warnings
    failure: bool = False  # clients are told that a job failed
    reschedule: bool = False  # a worker can put a job back for later
