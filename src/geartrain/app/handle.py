"""Handles of submitted calls: the result, in the type that the task's function returns, status and events."""

from collections.abc import AsyncIterator, Iterator
from typing import Generic, TypeVar

from geartrain.app.call import Call
from geartrain.app.transport import SubmittedJob
from geartrain.client.job_events import Event
from geartrain.client.loop_thread import LoopThread
from geartrain.client.order import Status

R = TypeVar("R")


class TaskHandle(Generic[R]):
    """A submitted call: the result of `await task.submit(...)`."""

    __slots__ = ("_job", "call")

    def __init__(self, call: Call[R], job: SubmittedJob) -> None:
        self.call = call
        self._job = job

    def __repr__(self) -> str:
        return f"<TaskHandle {self.call.task.name} {self.id} {self.handle!r}>"

    @property
    def id(self) -> str:
        """The call's id: the same for all attempts, and known to the worker."""
        return self.call.id

    @property
    def handle(self) -> str:
        """The server's handle of the job; empty if the protocol has none."""
        return self._job.handle.decode("utf-8", "replace")

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the result, at most `timeout` seconds.

        JobFailedError if the task has failed and is not retried, JobTimeoutError after the timeout, UnsupportedError if
        the protocol cannot ask for the result of a background job.
        """
        return self.call.task.read_result(await self._job.result(timeout))

    async def status(self) -> Status:
        """The job's current status, if the protocol can ask for it."""
        return await self._job.status()

    async def cancel(self) -> bool:
        """Cancel the job, if the protocol can; False if it was finished or unknown."""
        return await self._job.cancel()

    def events(self) -> AsyncIterator[Event]:
        """Events of a call made with `start`: progress, data, warnings, and the end."""
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

    def status(self) -> Status:
        """As `TaskHandle.status`."""
        return self._loop.call(self._handle.status())

    def cancel(self) -> bool:
        """As `TaskHandle.cancel`."""
        return self._loop.call(self._handle.cancel())

    def events(self) -> Iterator[Event]:
        """As `TaskHandle.events`."""
        return self._loop.iterate(self._handle.events())
