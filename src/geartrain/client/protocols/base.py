"""The interface between the library and the protocols: one connection to one server, as a client or as a worker.

The library above it (clients, workers, reconnecting, several servers) knows no protocol. A protocol object knows only
its own connection and is thrown away when that breaks. Its methods do not wait: they queue what is to be sent and
return, and answers arrive as calls of a listener, so thousands of jobs can be under way on one connection without a
task for each. Everything happens on the event loop that called `open`.

Every protocol keeps these rules:

- `open` returns when the peer has answered enough to identify it as a server of this protocol, or raises OSError,
  ClientError or WireError. A token that the server does not accept is an AuthenticationError.
- Everything that is queued in one iteration of the event loop leaves with one write.
- When the connection breaks, or the server violates the protocol, every listener that still waits gets `gone`, and
  then `lost` is called, once. After that, and after `close`, no listener is called any more.
- Nothing that `capabilities` denies is requested: the library checks before it calls.
"""

import abc
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar, Final, Protocol

from geartrain.address import Address
from geartrain.client.job_events import Event
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.slots import Slots
from geartrain.errors import AuthenticationError, ClientError, ResultCutError, ResultGoneError, UnsupportedError

Lost = Callable[[Exception], None]

# The errors of the library for the kinds of problems that a Geartrain server has with a result.
RESULT_ERRORS: Final[dict[str, type[ClientError]]] = {"result-gone": ResultGoneError, "result-cut": ResultCutError}


class JobListener(Protocol):
    """Receives the answers to one order: `accepted`, `refused` or `gone`; then the events of a foreground job."""

    def accepted(self, acceptance: Acceptance) -> None:
        """The server has the job; a background job is durable there."""

    def refused(self, error: Exception) -> None:
        """The server does not take the job. This is the last call."""

    def event(self, event: Event) -> None:
        """Something happened to the job. Completed and Failed are the last events."""

    def gone(self, error: Exception) -> None:
        """The connection broke before the job ended: its fate is unknown. This is the last call."""


class ClientProtocol(abc.ABC):
    """A client's connection to one server."""

    capabilities: ClassVar[Capabilities]
    # Whether `status` knows all states. What a protocol cannot say itself, the library asks with control jobs if the
    # server is a Geartrain.
    has_states: ClassVar[bool] = False
    has_workflows: ClassVar[bool] = False  # whether it has `submit_workflow`; otherwise control jobs submit workflows
    tls: ssl.SSLContext | None = None  # set before `open` for an encrypted connection
    token: str = ""  # set before `open`, where the protocol can carry one
    is_geartrain: bool | None = None  # whether the server is a Geartrain; None: not known

    def __init__(self, address: Address, lost: Lost) -> None:
        self.address = address
        self.lost = lost

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Why the protocol cannot express this order although `capabilities` allow it; empty if it can.

        For example, a name may be too long.
        """
        return ""

    def needs_control(self, order: Order) -> bool:
        """Whether only a control job can express this order, which `capabilities` allow."""
        return False

    @abc.abstractmethod
    async def open(self) -> None:
        """Connect."""

    @abc.abstractmethod
    def submit(self, order: Order, listener: JobListener) -> None:
        """Submit a job. The listener of a foreground job gets every event, that of a background job only `accepted`."""

    async def submit_workflow(self, request: dict[str, Any]) -> dict[str, Any]:
        """Submit jobs that belong together; returns the handle of their workflow, and their own."""
        raise NotImplementedError

    async def status(self, acceptance: Acceptance) -> Status:
        """Ask the server for a job's status."""
        raise NotImplementedError

    async def cancel(self, acceptance: Acceptance) -> bool:
        """Cancel a job; false if there was none to cancel."""
        raise NotImplementedError

    async def result(self, acceptance: Acceptance) -> Event:
        """Wait for the end of a background job: Completed or Failed."""
        raise NotImplementedError

    def can_follow(self, acceptance: Acceptance) -> bool:
        """Whether the protocol itself has `result` and `events` of this background job, without polling for them."""
        return False

    def events(self, acceptance: Acceptance) -> AsyncIterator[Event]:
        """The events of a background job from now on; Completed or Failed last."""
        raise NotImplementedError

    def control_name(self, acceptance: Acceptance) -> dict[str, bytes | int]:
        """The arguments that name a job for the control function."""
        return {"handle": acceptance.handle}

    def forget(self, listener: JobListener) -> None:  # noqa: B027  # most protocols have no command for it, and need none
        """Call this listener no more; tell the server that the client no longer waits, if the protocol can."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what is queued, then close the connection."""


class Assignment:
    """A job that the server assigned to a worker. Protocols may subclass it to keep what their answers need."""

    __slots__ = ("attempt", "function", "handle", "payload", "unique")

    def __init__(self, function: bytes, payload: bytes, handle: bytes = b"", unique: bytes = b"") -> None:
        self.function = function
        self.payload = payload
        self.handle = handle  # empty where the protocol does not send it
        self.unique = unique
        self.attempt = 0  # the number of this attempt, from 1; 0: the protocol does not say


class JobRunner(Protocol):
    """Runs the jobs that a WorkerProtocol receives."""

    def assigned(self, job: Assignment) -> None:
        """Run a job, and call one of the endings (complete, fail, reschedule, release) for it."""

    def revoked(self, job: Assignment) -> None:
        """The server took the job back (its lease expired, or it was cancelled): its ending will be ignored."""


class WorkerProtocol(abc.ABC):
    """A worker's connection to one server. It requests jobs by itself while fewer than `concurrency` run."""

    capabilities: ClassVar[Capabilities]
    tls: ssl.SSLContext | None = None  # set before `open` for an encrypted connection
    token: str = ""  # set before `open`, where the protocol can carry one

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        self.address = address
        self.lost = lost
        self.runner = runner
        self.name = name  # shown to operators, where the protocol can send it
        self.concurrency = concurrency
        # A slot is taken before a job is requested, and given back when there is no job or the job is over. The
        # connections of one worker share its slots, so that together they request no more jobs than it can run.
        # Protocols that cannot take a request back do not use them.
        self.slots = Slots(concurrency)

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Why the protocol cannot express the name of this function; empty if it can."""
        return ""

    @property
    def needs_watch(self) -> bool:
        """Whether jobs have names, but the server cannot say that it took one back: the library asks for that."""
        return False

    def check_names(self, *functions: bytes) -> None:
        """Raise an UnsupportedError for the first name that the protocol cannot express."""
        for function in functions:
            reason = self.unsupported_reason(function)
            if reason:
                raise UnsupportedError(reason)

    @abc.abstractmethod
    async def open(self, functions: dict[bytes, float]) -> None:
        """Connect, register these functions (each with the seconds a job may take, 0: no limit) and request jobs."""

    @abc.abstractmethod
    def register(self, function: bytes, timeout: float) -> None:
        """Register one more function."""

    @abc.abstractmethod
    def unregister(self, function: bytes) -> None:
        """Take no more jobs of this function; running ones go on."""

    @abc.abstractmethod
    def stop_fetching(self) -> None:
        """Request no more jobs, for good. Running jobs can still be answered."""

    async def fetching_stopped(self) -> None:  # noqa: B027  # nothing to wait for where a request can be taken back
        """After `stop_fetching`: return when no job can be assigned any more."""

    # Reports of a running job. A protocol that cannot send one ignores it.

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:  # noqa: B027
        """Report progress."""

    def data(self, job: Assignment, data: bytes) -> None:  # noqa: B027
        """Send a part of the result."""

    def warn(self, job: Assignment, data: bytes) -> None:  # noqa: B027
        """Send a warning."""

    # Endings. After one of them the worker is done with the job, and the protocol requests the next.

    @abc.abstractmethod
    def complete(self, job: Assignment, result: bytes) -> None:
        """The job succeeded."""

    @abc.abstractmethod
    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """The job failed: `reason` is for people, `data` for the client where the protocol has exceptions."""

    def reschedule(self, job: Assignment, delay: float) -> None:
        """The job shall run again after this many seconds."""
        raise NotImplementedError

    def release(self, job: Assignment) -> None:  # noqa: B027
        """Drop the job without an answer, because it is no longer this worker's, and request the next.

        The only ending that may follow `lost`, for jobs that were running then.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what is queued, then close the connection; the server takes back the jobs that still run."""


def authentication_error(address: Address, token: str | bytes, reason: str) -> AuthenticationError:
    """The error for a server that does not accept the token, or requires one if it is empty; without the token."""
    what = "did not accept the token" if token else "requires a token"
    return AuthenticationError(f"{address} {what}{reason and ': '}{reason}")


def whole_numbers(numerator: float, denominator: float) -> tuple[int, int]:
    """Progress for protocols that have whole numbers only: fractions are counted in thousandths.

    >>> whole_numbers(3, 4), whole_numbers(0.75, 1)
    ((3, 4), (750, 1000))
    """
    scale = 1 if numerator == int(numerator) and denominator == int(denominator) else 1000
    return round(numerator * scale), round(denominator * scale)
