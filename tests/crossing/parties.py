"""The six protocols as clients and workers of the library: to choose one is to choose a URL."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from geartrain.client.async_client import AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Job
from geartrain.errors import NoWorkersError
from tests.support import periodic_peer, serving

DOORS = {
    "gearman": "gearman://127.0.0.1:0",
    "danga": "danga://127.0.0.1:0",
    "periodic": "periodic://127.0.0.1:0",
    "memodb": "memodb+tcp://127.0.0.1:0",
    "gearmonkey": "gearmonkey://127.0.0.1:0",
    "http": "http://127.0.0.1:0",
}
PROTOCOLS = tuple(DOORS)
PATIENCE = 60.0  # seconds until a missing word is a failure; a passing test never waits this long
ATTEMPTS = 2  # workers that may fail to finish a job before the server gives it up
# Of a server whose doors are those above, in this order. By HTTP a lost worker is noticed by its silence alone.
SETTINGS = (
    "--max-attempts", str(ATTEMPTS), "--http-worker-lease", "2s",
    *(word for door in DOORS.values() for word in ("--listen", door)),
)  # fmt: skip

_serial = itertools.count(1)


class House:
    """A server with a door for each protocol, or two of one cluster: the second one is then the workers'."""

    def __init__(self, server: serving.ServerProcess, workers: serving.ServerProcess | None = None) -> None:
        self.urls = dict(zip(DOORS, server.urls, strict=False))
        self.worker_urls = dict(zip(DOORS, (workers or server).urls, strict=False))
        self._observer = periodic_peer.Peer(int(self.urls["periodic"].rpartition(":")[2]))

    def close(self) -> None:
        self._observer.close()

    def jobs(self, function: str) -> int:
        """How many jobs of a function the server has, of whatever protocol."""
        return self._observer.status().get(function.encode(), [0, 0])[1]


class Bench:
    """What a worker does with the jobs of one function, as a test wants it."""

    def __init__(self) -> None:
        self.function = f"crossing-{next(_serial)}"
        self.ran: list[Job] = []
        self._begun = asyncio.Semaphore(0)

    async def begun(self) -> None:
        """One more job has begun."""
        async with asyncio.timeout(PATIENCE):
            await self._begun.acquire()

    def note(self, job: Job) -> None:
        self.ran.append(job)
        self._begun.release()

    @property
    def payloads(self) -> list[bytes]:
        return [job.payload for job in self.ran]


Work = Callable[[Job], Awaitable[bytes | None]]


@contextlib.asynccontextmanager
async def working(url: str, bench: Bench, work: Work) -> AsyncIterator[AsyncWorker]:
    """A worker that does this, one job at a time; at the end what still runs is given up."""

    async def noted(job: Job) -> bytes | None:
        bench.note(job)
        return await work(job)

    worker = AsyncWorker(url)
    worker.register(bench.function, noted)
    await worker.start()
    try:
        async with asyncio.timeout(PATIENCE):
            await worker.ready()
        yield worker
    finally:
        worker.stop()
        worker.stop()
        await worker.close(ask=False)


async def submit(client: AsyncClient, bench: Bench, payload: bytes, **words: Any) -> AsyncJob:
    """Submit a job, again if the server has not heard of the worker yet and the protocol does not wait for one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await client.submit(bench.function, payload, **words)
            except NoWorkersError:
                await asyncio.sleep(0.01)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Ask again until it is so: for what the server does not tell by itself."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not await asyncio.to_thread(condition):
        assert asyncio.get_running_loop().time() < deadline, f"never: {what}"
        await asyncio.sleep(0.01)
