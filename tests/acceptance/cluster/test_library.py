"""The library with several servers of one cluster, of which one is killed."""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.app.app import App
from geartrain.client.async_client import AsyncClient
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Job
from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.support.waiting import PATIENCE

pytestmark = POSTGRESQL


@pytest.fixture
def servers(schema_url: str) -> Iterator[Pair]:
    with member(schema_url, "one", "--lease", "2s") as one, member(schema_url, "two", "--lease", "2s") as two:
        yield one, two


def kill(servers: Pair, url: str) -> None:
    next(server for server in servers if server.url == url).kill()


class Bench:
    """A function that waits during its first run."""

    def __init__(self) -> None:
        self.runs = 0
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def work(self, job: Job) -> bytes:
        self.runs += 1
        self.begun.set()
        if self.runs == 1:
            await self.go_on.wait()
        return job.payload[::-1]

    def worker(self, *urls: str) -> AsyncWorker:
        worker = AsyncWorker(*urls, concurrency=2)
        worker.register("f", self.work)
        return worker


@pytest.mark.parametrize("background", [True, False])
def test_job_whose_server_was_killed(servers: Pair, background: bool) -> None:
    """A background job is taken over by the other server, and a foreground job is submitted again there."""
    urls = [server.url for server in servers]

    async def scenario() -> bytes:
        bench = Bench()
        async with bench.worker(*urls), AsyncClient(*urls, cluster=True) as client:
            job = await client.submit("f", b"abc", background=background, resubmit=not background)
            await bench.begun.wait()
            result = asyncio.create_task(job.result(PATIENCE))
            kill(servers, job.server)
            bench.go_on.set()  # if the other server had borrowed the job, this run counts
            return await result

    assert asyncio.run(scenario()) == b"cba"


def test_status_and_cancel_at_another_server(servers: Pair) -> None:
    urls = [server.url for server in servers]

    async def scenario() -> tuple[str, bool, str]:
        async with AsyncClient(*urls, cluster=True) as client:
            job = await client.submit("nobody", b"abc", background=True)
            kill(servers, job.server)
            before = await job.status()
            cancelled = await job.cancel()
            return before.state, cancelled, (await job.status()).state

    assert asyncio.run(scenario()) == ("queued", True, "cancelled")


def test_app(servers: Pair) -> None:
    app = App("shop", *(server.url for server in servers), cluster=True)

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async def scenario() -> int:
        async with app:
            handle = await double.submit(21)
            kill(servers, handle.server)
            serving = asyncio.create_task(app.serve())
            try:
                return await handle.result(PATIENCE)
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

    assert asyncio.run(scenario()) == 42
