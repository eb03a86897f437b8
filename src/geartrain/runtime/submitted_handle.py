"""The handle of a job that was submitted: its own, or that of the job of another server that has its unique key."""

import asyncio

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import KeyWaiter
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.errors import NotDurableError


class SubmittedHandle(KeyWaiter):
    """Right once the submission is settled: durable, and known to be this server's job or another one's."""

    __slots__ = ("_job", "_settled", "handle")

    def __init__(self, engine: Engine, job: LiveJob) -> None:
        self.handle = job.handle
        self._job = job
        self._settled: asyncio.Future[None] | None = None  # None: the job is this server's for certain
        if job.state is RESERVING:
            self._settled = asyncio.get_running_loop().create_future()
            engine.wait_for_key(job, self)

    async def settled(self) -> None:
        """Wait, after the commit, for the answer of another server. A NotDurableError if a later commit failed."""
        if self._settled is None:
            return
        await self._settled
        if not self._job.background and self.handle == self._job.handle:
            raise NotDurableError

    def key_taken(self, handle: bytes) -> None:
        """Take over that handle."""
        self.handle = handle
        self._settle()

    def key_free(self) -> None:
        """The handle is the right one."""
        self._settle()

    def _settle(self) -> None:
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)
