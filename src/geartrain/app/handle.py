"""Handles of submitted calls: the result, in the type that the task's function returns, status and events."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar

from geartrain import failure_reasons
from geartrain.app.call import Call
from geartrain.app.transport import SubmittedJob
from geartrain.client.job_events import Event
from geartrain.client.loop_thread import LoopThread
from geartrain.client.order import Status

R = TypeVar("R")


class TaskHandle(Generic[R]):
    """A submitted call: the result of `await task.submit(...)`, or of `task.handle(id)` in another program."""

    __slots__ = ("_job", "_read_result", "call", "name")

    def __init__(
        self, job: SubmittedJob, name: str, read_result: Callable[[bytes], R], call: Call[R] | None = None
    ) -> None:
        self.name = name  # of the task; empty: not known
        self.call = call  # None: it was submitted by another program, or earlier
        self._job = job
        self._read_result = read_result

    def __repr__(self) -> str:
        return f"<TaskHandle {self.name} {self.id} {self.handle!r}>"

    @property
    def id(self) -> str:
        """The call's id: the same for all attempts, and known to the worker; empty for a call made elsewhere."""
        return self.call.id if self.call is not None else ""

    @property
    def handle(self) -> str:
        """The server's handle of the job, with which `task.handle` finds it again; empty if the protocol has none."""
        return self._job.handle.decode("utf-8", "replace")

    @property
    def server(self) -> str:
        """The URL of the server that has the job."""
        return self._job.server

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the result, at most `timeout` seconds.

        JobFailedError if the task has failed and is not retried, JobTimeoutError after the timeout, ResultGoneError if
        the server has no record of the job, UnsupportedError if it has none of background jobs.
        """
        return self._read_result(await self._job.result(timeout))

    async def state(self) -> str:
        """scheduled, queued, running, done, failed, dead, cancelled, expired, or unknown."""
        return (await self._job.status()).state

    async def progress(self) -> tuple[float, float] | None:
        """What the task reported last, such as (3, 4); None: nothing."""
        status = await self._job.status()
        return (status.numerator, status.denominator) if status.denominator else None

    async def traceback(self) -> str:
        """The traceback of the last failed attempt, also if the task is to be retried; empty if there is none."""
        reason = (await self._job.status()).reason
        return reason if failure_reasons.has_traceback(reason) else ""

    async def logs(self) -> list[str]:
        """The lines that the task's attempts have logged, if the task has the option `keep_logs`."""
        return (await self._job.log()).splitlines()

    async def status(self) -> Status:
        """The job's current status, if the protocol can ask for it."""
        return await self._job.status()

    async def cancel(self) -> bool:
        """Cancel the job, if the protocol can; False if it was finished or unknown."""
        return await self._job.cancel()

    def events(self) -> AsyncIterator[Event]:
        """The call's events: progress, data, warnings, and the end; of a call made with `submit` from now on."""
        return self._job.events()


class SyncTaskHandle(Generic[R]):
    """A `TaskHandle` for programs without an event loop."""

    __slots__ = ("_handle", "_loop")

    def __init__(self, handle: TaskHandle[R], loop: LoopThread) -> None:
        self._handle = handle
        self._loop = loop

    def __repr__(self) -> str:
        return f"<Sync{repr(self._handle)[1:]}"

    @property
    def id(self) -> str:
        """The call's id: the same for all attempts, and known to the worker."""
        return self._handle.id

    @property
    def handle(self) -> str:
        """The server's handle of the job; empty if the protocol has none."""
        return self._handle.handle

    def result(self, timeout: float | None = None) -> R:
        """As `TaskHandle.result`."""
        return self._loop.call(self._handle.result(timeout))

    @property
    def server(self) -> str:
        """The URL of the server that has the job."""
        return self._handle.server

    def state(self) -> str:
        """As `TaskHandle.state`."""
        return self._loop.call(self._handle.state())

    def progress(self) -> tuple[float, float] | None:
        """As `TaskHandle.progress`."""
        return self._loop.call(self._handle.progress())

    def traceback(self) -> str:
        """As `TaskHandle.traceback`."""
        return self._loop.call(self._handle.traceback())

    def logs(self) -> list[str]:
        """As `TaskHandle.logs`."""
        return self._loop.call(self._handle.logs())

    def status(self) -> Status:
        """As `TaskHandle.status`."""
        return self._loop.call(self._handle.status())

    def cancel(self) -> bool:
        """As `TaskHandle.cancel`."""
        return self._loop.call(self._handle.cancel())

    def events(self) -> Iterator[Event]:
        """As `TaskHandle.events`."""
        return self._loop.iterate(self._handle.events())
