"""What a submission gives back: the task's future result, in the type that its function says."""

from collections.abc import AsyncIterator, Iterator
from typing import Generic, TypeVar

from geartrain.app.call import Call
from geartrain.app.transport import Remote
from geartrain.client.job_events import Event
from geartrain.client.loop_thread import LoopThread
from geartrain.client.order import Status

R = TypeVar("R")


class TaskHandle(Generic[R]):
    """A call that a server has."""

    __slots__ = ("call", "remote")

    def __init__(self, call: Call[R], remote: Remote) -> None:
        self.call = call
        self.remote = remote

    def __repr__(self) -> str:
        return f"<TaskHandle {self.call.task.name} {self.id} {self.handle!r}>"

    @property
    def id(self) -> str:
        """Ours: the same over all attempts, and known to the worker."""
        return self.call.id

    @property
    def handle(self) -> str:
        """The server's name for the job; empty where the protocol has none."""
        return self.remote.handle.decode("utf-8", "replace")

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the end, for so many seconds at most, and give what the function returned.

        JobFailedError if it failed for good, JobTimeoutError if it is not over yet, UnsupportedError where the
        protocol has no way to ask for a background job's result.
        """
        return self.call.task.read_result(await self.remote.result(timeout))

    async def status(self) -> Status:
        """What the server knows of it at this moment, where the protocol can say so."""
        return await self.remote.status()

    async def cancel(self) -> bool:
        """End it, where the protocol can; whether there was something to end."""
        return await self.remote.cancel()

    def events(self) -> AsyncIterator[Event]:
        """What is heard of a call that somebody waits for: progress, data, warnings, and the end."""
        return self.remote.events()


class SyncTaskHandle(Generic[R]):
    """The same for programs without an event loop of their own."""

    __slots__ = ("_handle", "_loop")

    def __init__(self, handle: TaskHandle[R], loop: LoopThread) -> None:
        self._handle = handle
        self._loop = loop

    def __repr__(self) -> str:
        return f"<Sync{repr(self._handle)[1:]}"

    @property
    def id(self) -> str:
        """Ours: the same over all attempts, and known to the worker."""
        return self._handle.id

    @property
    def handle(self) -> str:
        """The server's name for the job; empty where the protocol has none."""
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
