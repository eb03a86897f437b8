"""A job that a worker of the library was given, as a task sees it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from geartrain.app.server_control import JobName, ServerControl
from geartrain.client.job import Job


class WorkerJob:
    """What a task may say about its job, from whatever thread it runs in, and what its server knows of it."""

    __slots__ = ("_home", "_job", "_loop", "payload", "steering")

    def __init__(self, job: Job, steering: ServerControl, loop: asyncio.AbstractEventLoop, home: int) -> None:
        self.payload = job.payload
        self.steering = steering
        self._job = job
        self._loop = loop
        self._home = home  # the thread of the loop

    @property
    def handle(self) -> bytes:
        return self._job.handle.encode("utf-8", "surrogateescape")

    @property
    def name(self) -> JobName:
        """What the protocol calls it."""
        names = (self._job.function, self._job.handle, self._job.unique)
        return JobName(*(name.encode("utf-8", "surrogateescape") for name in names))

    async def can_be_steered(self) -> bool:
        """Whether its server does more with a job than its protocol can say, and knows which one is meant."""
        return self.name.says_something and await self.steering.available()

    def progress(self, numerator: float, denominator: float) -> None:
        self._say(self._job.progress, numerator, denominator)

    def data(self, data: bytes) -> None:
        self._say(self._job.data, data)

    def warn(self, data: bytes) -> None:
        self._say(self._job.warn, data)

    async def attempts(self) -> int:
        """As the server counts; 1 where it cannot be asked."""
        if not await self.can_be_steered():
            return 1
        found: int = (await self.view())["attempts"]
        return found

    async def view(self) -> dict[str, Any]:
        """What the server knows of it, its own handle among it."""
        return await self.steering.job(self.name, "running")

    def release(self) -> None:
        """Somebody else answers for it: whatever the function returns is not said."""
        self._job.revoked = True

    def _say(self, call: Callable[..., None], *said: Any) -> None:
        if threading.get_ident() == self._home:
            call(*said)
        else:
            self._loop.call_soon_threadsafe(call, *said)
