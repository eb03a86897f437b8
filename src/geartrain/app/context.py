"""The running task: what its function and the middleware around it can see and send."""

import contextvars
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from geartrain.app.codecs import Codec
from geartrain.app.envelope import Envelope
from geartrain.errors import JobFailedError

if TYPE_CHECKING:
    from geartrain.app.task import Task


class TaskJob(Protocol):
    """The job of a running task: its payload, and the updates that can be sent. Any thread may call it."""

    @property
    def handle(self) -> bytes: ...

    @property
    def payload(self) -> bytes: ...

    @property
    def revoked(self) -> bool: ...

    def progress(self, numerator: float, denominator: float) -> None: ...

    def data(self, data: bytes) -> None: ...

    def warn(self, data: bytes) -> None: ...

    @property
    def attempt(self) -> int:
        """The number of this attempt as the server counts, from 1."""

    async def parent_results(self, place: int, parents: Sequence[int]) -> Sequence[bytes | JobFailedError]:
        """The results of other jobs of its workflow, by their places there; `place` is its own."""


class Running:
    """A task that is running in a worker: the result of `current_task()`, and the argument of `around_run`."""

    __slots__ = ("_job", "args", "codec", "envelope", "kwargs", "overdue", "task")

    def __init__(
        self,
        task: "Task[Any, Any]",
        job: TaskJob,
        *,
        envelope: Envelope | None,
        codec: Codec,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> None:
        self.task = task
        self.args = args
        self.kwargs = kwargs
        self.envelope = envelope  # None: the payload was not an envelope
        self.codec = codec  # of the payload
        self.overdue = False  # the timeout is over; a thread cannot be stopped, but it can check this
        self._job = job

    @property
    def id(self) -> str:
        """The call's id, the same for all its attempts; empty if the sender gave none."""
        return self.envelope.id if self.envelope is not None else ""

    @property
    def meta(self) -> dict[str, Any]:
        """What middleware has sent with the call."""
        return self.envelope.meta if self.envelope is not None else {}

    @property
    def handle(self) -> str:
        """The server's handle of the job; empty if the protocol has none."""
        return self._job.handle.decode("utf-8", "replace")

    @property
    def revoked(self) -> bool:
        """Whether the job was cancelled, or given to another worker: its result will be ignored.

        A coroutine is cancelled then. A thread cannot be stopped, but it can look at this from time to time.
        """
        return self._job.revoked

    def progress(self, done: float, of: float = 100) -> None:
        """Report progress to the clients that wait for the result."""
        self._job.progress(done, of)

    def data(self, data: bytes | str) -> None:
        """Send a part of the result to the clients that wait for it."""
        self._job.data(data.encode() if isinstance(data, str) else data)

    def warn(self, text: bytes | str) -> None:
        """Send a warning to the clients that wait for the result."""
        self._job.warn(text.encode() if isinstance(text, str) else text)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._job.attempt + (self.envelope.tried if self.envelope is not None else 0)

    def will_retry(self, error: BaseException) -> bool:
        """Whether another attempt follows if this one ends with the error. For middleware that reports failures."""
        return self.task.retry_policy.delay_after(error, self.attempt) is not None


_current: contextvars.ContextVar[Running] = contextvars.ContextVar("geartrain_task")


def current_task() -> Running:
    """The task that is running; LookupError outside of a task.

    >>> from geartrain.app import App
    >>> from geartrain.testing import InMemory
    >>> app = App("shop")
    >>> @app.task
    ... def name() -> str:
    ...     return current_task().task.name
    >>> with app, InMemory(app):
    ...     name.call_sync()
    'shop.name'
    """
    try:
        return _current.get()
    except LookupError:
        raise LookupError("no task is running: current_task() works in functions that a worker runs") from None


def enter(running: Running) -> contextvars.Token[Running]:
    """Make this the current task, until `leave`."""
    return _current.set(running)


def leave(token: contextvars.Token[Running]) -> None:
    """Restore what was current before `enter`."""
    _current.reset(token)
