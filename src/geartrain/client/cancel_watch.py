"""Notice that running jobs were cancelled, for workers whose protocol has no message for it.

Jobs that have run for a second are watched over a second connection, a client's. It asks a Geartrain server for the
end of each of them: one that comes while the job still runs here means that the job was cancelled or given to another
worker. Short jobs cost nothing but an entry in a table.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from geartrain.address import Address
from geartrain.client.async_client import AsyncClient
from geartrain.client.credentials import Credentials
from geartrain.client.protocols.base import Assignment
from geartrain.errors import GeartrainError, JobFailedError, UnsupportedError

_LOOK_SECONDS: Final = 1.0  # between two looks at which jobs still run


class CancelWatch:
    """The watch of one connection's jobs."""

    def __init__(self, address: Address, credentials: Credentials, revoked: Callable[[Assignment], None]) -> None:
        self._address = address
        self._credentials = credentials
        self._revoked = revoked
        self._running: dict[Assignment, bool] = {}  # and whether a look has seen it
        self._tasks: dict[Assignment, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._client: AsyncClient | None = None
        self._over = False  # closed, or the server is no Geartrain

    def begin(self, job: Assignment) -> None:
        """A job runs now."""
        if self._over:
            return
        self._running[job] = False
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def end(self, job: Assignment) -> None:
        """A job does not run any more."""
        self._running.pop(job, None)
        if self._tasks:
            task = self._tasks.pop(job, None)
            if task is not None:
                task.cancel()

    async def close(self) -> None:
        """Watch no more."""
        self._stop()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    def _stop(self) -> None:
        self._over = True
        self._running.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Watch the jobs that the last look has seen already."""
        self._timer = None
        for job, seen in self._running.items():
            if seen and job not in self._tasks:
                self._tasks[job] = asyncio.create_task(self._watch(job))
            self._running[job] = True
        if self._running:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    async def _watch(self, job: Assignment) -> None:
        if self._client is None:
            credentials = self._credentials
            self._client = AsyncClient(str(self._address), tls=credentials.tls, token=credentials.token)
        try:
            await self._client.job(job.handle, job.function, job.unique).result()
        except JobFailedError:
            pass
        except UnsupportedError:
            self._stop()
            return
        except (GeartrainError, OSError):
            return  # the job is not watched any more; its late answer will be ignored
        if job in self._running:
            self._revoked(job)
