"""The seam between the library and the protocols: one connection to one server, as a client or as a worker.

The library above it (clients, workers, reconnecting, several servers) knows no protocol; a link knows no more than its
own connection, and is thrown away when that breaks. Nothing here waits: calls say something and return, and answers
come as calls of a sink, so that thousands of jobs can be under way on one connection without a task for each.
Everything happens on the loop that opened the link.

Rules that every link keeps:

- `open` returns when the server has answered enough to be sure that it is one, or raises OSError or ClientError.
- What gathers in one turn of the loop leaves with one write.
- A link whose connection breaks, or that hears what its protocol does not allow, calls `lost` once, after every
  sink that still waits has been told `gone`; from then on it is silent. `close` is silent as well.
- Asking for what `capabilities` denies does not happen: the library has checked.
"""

import abc
import ssl
from collections.abc import Callable
from typing import ClassVar, Protocol

from geartrain.address import Address
from geartrain.client.job_events import Event
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.slots import Slots

Lost = Callable[[Exception], None]


class JobListener(Protocol):
    """Whoever hears of one order: first `accepted`, `refused` or `gone`; then, if it waits, events until the last."""

    def accepted(self, receipt: Acceptance) -> None:
        """The server has the job; a background job is durable there."""

    def refused(self, error: Exception) -> None:
        """The server does not take it, and says why. Nothing more comes."""

    def event(self, event: Event) -> None:
        """News of the job. Completed and Failed are the last."""

    def gone(self, error: Exception) -> None:
        """The connection broke before the last word: nobody knows what became of the job. Nothing more comes."""


class ClientProtocol(abc.ABC):
    """A client's connection."""

    capabilities: ClassVar[Capabilities]
    tls: ssl.SSLContext | None = None  # set before `open`, where the connection shall be encrypted

    def __init__(self, address: Address, lost: Lost) -> None:
        self.address = address
        self.lost = lost

    @classmethod
    def objection(cls, order: Order) -> str:
        """Why this order cannot be said though its parts can, such as a name that is too long; empty: it can."""
        return ""

    @abc.abstractmethod
    async def open(self) -> None:
        """Connect."""

    @abc.abstractmethod
    def submit(self, order: Order, listener: JobListener) -> None:
        """Order a job. A foreground order's sink hears everything until the end, a background one's `accepted`."""

    async def status(self, receipt: Acceptance) -> Status:
        """What the server knows of a job."""
        raise NotImplementedError

    async def cancel(self, receipt: Acceptance) -> bool:
        """End a job; whether there was one to end."""
        raise NotImplementedError

    async def result(self, receipt: Acceptance) -> Event:
        """Wait for the end of a background job: Completed or Failed."""
        raise NotImplementedError

    def forget(self, listener: JobListener) -> None:  # noqa: B027  # most protocols have no word for it, and need none
        """The caller does not wait any longer; where the protocol can say so, it is said. The sink hears no more."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what has gathered, and hang up."""


class Assignment:
    """A job that a worker has been given. Links may make subclasses that remember what they answer with."""

    __slots__ = ("function", "handle", "payload", "unique")

    def __init__(self, function: bytes, payload: bytes, handle: bytes = b"", unique: bytes = b"") -> None:
        self.function = function
        self.payload = payload
        self.handle = handle  # as the server calls it; empty where the protocol does not say
        self.unique = unique


class JobRunner(Protocol):
    """Whoever does the work."""

    def assigned(self, job: Assignment) -> None:
        """Here is a job; it runs until one of the endings is called for it."""

    def revoked(self, job: Assignment) -> None:
        """The server took it back (a lease ran out, it was cancelled): its ending will be refused, or is not wanted."""


class WorkerProtocol(abc.ABC):
    """A worker's connection. It asks for jobs by itself as long as fewer than `concurrency` run."""

    capabilities: ClassVar[Capabilities]
    tls: ssl.SSLContext | None = None  # set before `open`, where the connection shall be encrypted

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        self.address = address
        self.lost = lost
        self.runner = runner
        self.name = name  # what people shall call this worker, where the protocol can say so
        self.concurrency = concurrency
        # For links that can: a slot is taken before a job is asked for, and given back when there is none or it is
        # over. The links of one worker share them, so that all together ask for no more than it can run.
        self.slots = Slots(concurrency)

    @abc.abstractmethod
    async def open(self, functions: dict[bytes, float]) -> None:
        """Connect, offer these functions (each with the seconds a job may take, 0: no limit) and ask for jobs."""

    @abc.abstractmethod
    def offer(self, function: bytes, timeout: float) -> None:
        """Offer one more function."""

    @abc.abstractmethod
    def withdraw(self, function: bytes) -> None:
        """Offer a function no longer."""

    @abc.abstractmethod
    def rest(self) -> None:
        """Ask for no more jobs; those that run can still be answered. There is no way back."""

    async def rested(self) -> None:  # noqa: B027  # for links whose requests are answered at once or can be taken back
        """After `rest`: return when no job can be assigned any more."""

    # What a running job says; a protocol without the word for it says nothing.

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:  # noqa: B027
        """How far it is."""

    def data(self, job: Assignment, data: bytes) -> None:  # noqa: B027
        """A part of the result."""

    def warn(self, job: Assignment, data: bytes) -> None:  # noqa: B027
        """A warning."""

    # The endings; after one of them the job is over for this worker, and the link asks for the next.

    @abc.abstractmethod
    def complete(self, job: Assignment, result: bytes) -> None:
        """It is done."""

    @abc.abstractmethod
    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """It failed: `reason` for people, `data` for the client where the protocol has exceptions."""

    def reschedule(self, job: Assignment, delay: float) -> None:
        """It shall run again after so many seconds."""
        raise NotImplementedError

    def release(self, job: Assignment) -> None:  # noqa: B027
        """Somebody else has taken care of it: forget it without a word, and ask for the next.

        The one call that may come after `lost`, for a job that was running then.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what has gathered, and hang up; what still runs goes back to the server."""
