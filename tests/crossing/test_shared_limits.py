"""Limits count the jobs of all workers together, whichever protocol each of them speaks."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest

from geartrain.client.async_client import AsyncClient
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Job
from tests.crossing.parties import DOORS, PATIENCE, PROTOCOLS
from tests.support import serving
from tests.support.http_peer import Peer
from tests.support.protocol_ends import async_test, new_name

SLOTS = 2  # of each worker
TENANTS = ("acme", "bits", "corp")


@pytest.fixture
def urls() -> Iterator[dict[str, str]]:
    """Of a server that takes no job from a worker which is silent for a while."""
    listens = [word for door in DOORS.values() for word in ("--listen", door)]
    with serving.serve("--store", "memory", *listens) as server:
        yield dict(zip(DOORS, server.urls, strict=True))


class Crowd:
    """Workers of all protocols for one function, and what they run; a job ends when it is told to."""

    def __init__(self) -> None:
        self.function = new_name().decode()
        self.running: dict[str, asyncio.Event] = {}  # by payload
        self.most: Counter[str] = Counter()  # that ran at once: of a tenant, and of all
        self.changed = asyncio.Event()

    async def run(self, job: Job) -> None:
        payload = job.payload.decode()
        end = self.running[payload] = asyncio.Event()
        together = Counter(name.partition(" ")[0] for name in self.running)
        self.most |= together + Counter({"": len(self.running)})
        self.changed.set()
        await end.wait()

    async def runs(self, count: int) -> None:
        """Wait until so many jobs run."""
        async with asyncio.timeout(PATIENCE):
            while len(self.running) != count:
                self.changed.clear()
                await self.changed.wait()

    def end_one(self) -> str:
        """End the job that began first; return its payload."""
        payload = next(iter(self.running))
        self.running.pop(payload).set()
        return payload


async def give_up(worker: AsyncWorker) -> None:
    worker.stop()
    worker.stop()  # what still runs, if a limit did not hold
    await worker.close(ask=False)


@async_test
async def test_six_protocols_share_the_limits(urls: dict[str, str]) -> None:
    """Each worker alone has room for two jobs; all of them together run three, and one of each tenant."""
    crowd = Crowd()
    limits = {"max_running": 3, "max_running_per_partition": 1}
    answer = Peer(urls["http"]).call("PATCH", f"/functions/{crowd.function}/limits", limits)
    assert answer.status == 200
    async with contextlib.AsyncExitStack() as stack:
        for protocol in PROTOCOLS:
            worker = AsyncWorker(urls[protocol], concurrency=SLOTS)
            worker.register(crowd.function, crowd.run)
            await worker.start()
            stack.push_async_callback(give_up, worker)
            await worker.ready()
        client = await stack.enter_async_context(AsyncClient(urls["gearman"]))
        orders = [
            client.order(crowd.function, f"{tenant} {number}", background=True, partition=tenant)
            for tenant in TENANTS
            for number in range(6)
        ]
        await client.submit_many(orders)
        ended = []
        for left in range(len(orders), 0, -1):
            await crowd.runs(min(left, len(TENANTS)))
            ended.append(crowd.end_one())
    assert Counter(ended) == Counter(f"{tenant} {number}" for tenant in TENANTS for number in range(6))
    assert crowd.most == {"": 3, "acme": 1, "bits": 1, "corp": 1}
