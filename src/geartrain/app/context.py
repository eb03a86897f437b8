"""The task that runs at this moment, as its own function and the middleware around it see it."""

import contextvars
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from geartrain.app.codecs import Codec
from geartrain.app.envelope import Envelope

if TYPE_CHECKING:
    from geartrain.app.task import Task


class Assigned(Protocol):
    """A job as a worker got it, with what can be said while it runs. Any thread may speak."""

    @property
    def handle(self) -> bytes: ...

    @property
    def payload(self) -> bytes: ...

    def progress(self, numerator: float, denominator: float) -> None: ...

    def data(self, data: bytes) -> None: ...

    def warn(self, data: bytes) -> None: ...

    async def attempts(self) -> int:
        """How often a worker was given the job, this time included."""


class Running:
    """A call that is being run."""

    __slots__ = ("_job", "args", "call", "codec", "kwargs", "overdue", "task")

    def __init__(
        self,
        task: "Task[Any, Any]",
        job: Assigned,
        call: Envelope | None,
        codec: Codec,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> None:
        self.task = task
        self.args = args
        self.kwargs = kwargs
        self.call = call  # None: the payload was no envelope
        self.codec = codec  # that the call is written in
        self.overdue = False  # it ran out of time: a thread cannot be stopped, but it can look here
        self._job = job

    @property
    def id(self) -> str:
        """The call's, the same over all its attempts; empty where its sender gave none."""
        return self.call.id if self.call is not None else ""

    @property
    def meta(self) -> dict[str, Any]:
        """What middleware sent along."""
        return self.call.meta if self.call is not None else {}

    @property
    def handle(self) -> str:
        """The server's name for the job; empty where the protocol has none."""
        return self._job.handle.decode("utf-8", "replace")

    def progress(self, done: float, of: float = 100) -> None:
        """Say how far it is."""
        self._job.progress(done, of)

    def data(self, data: bytes | str) -> None:
        """Send a part of the result to whoever waits."""
        self._job.data(data.encode() if isinstance(data, str) else data)

    def warn(self, text: bytes | str) -> None:
        """Send a warning to whoever waits."""
        self._job.warn(text.encode() if isinstance(text, str) else text)

    async def attempt(self) -> int:
        """Which attempt this is, from 1; the server may have to be asked."""
        if self.call is not None and self.call.tried:
            return self.call.tried + 1
        return await self._job.attempts()


_current: contextvars.ContextVar[Running] = contextvars.ContextVar("geartrain_task")


def current_task() -> Running:
    """The task that runs here; LookupError outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("no task is running here: current_task() is for functions that a worker runs") from None


def enter(running: Running) -> contextvars.Token[Running]:
    """From now on this is the current one."""
    return _current.set(running)


def leave(token: contextvars.Token[Running]) -> None:
    """It is over."""
    _current.reset(token)
