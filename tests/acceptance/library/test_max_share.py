"""A share of a worker's slots for a function: slow jobs of one function leave slots for those of others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

import geartrain
from geartrain.client import gearmand
from tests.acceptance.library.conftest import play
from tests.support import serving

SLOTS = 20
SLOW = 40
FAST = 1000
SCHEMES = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")
LISTENS = [word for scheme in SCHEMES for word in ("--listen", f"{scheme}://{serving.HOST}:0")]


class Scene:
    """A worker whose slow jobs block until they are let go, and the numbers of jobs that it has run."""

    def __init__(self, function: str) -> None:
        self.slow_function, self.fast_function = f"{function}-slow", f"{function}-fast"
        self.running = self.most = self.slow_ended = self.fast = 0
        self.begun = asyncio.Event()  # as many slow jobs run as may
        self.expected = 0
        self.all_fast = asyncio.Event()
        self.slow_jobs = SLOW
        self.all_slow = asyncio.Event()
        self.let_go = asyncio.Event()

    async def slow(self, job: geartrain.Job) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running >= self.expected:
            self.begun.set()
        await self.let_go.wait()
        self.running -= 1
        self.slow_ended += 1
        if self.slow_ended == self.slow_jobs:
            self.all_slow.set()

    async def run_fast(self, job: geartrain.Job) -> None:
        self.fast += 1
        if self.fast == FAST:
            self.all_fast.set()

    def worker(self, *urls: str, max_share: float) -> geartrain.AsyncWorker:
        worker = geartrain.AsyncWorker(*urls, concurrency=SLOTS)
        worker.register(self.slow_function, self.slow, max_share=max_share)
        worker.register(self.fast_function, self.run_fast)
        self.expected = int(SLOTS * max_share)
        return worker

    @contextlib.asynccontextmanager
    async def played(self, *urls: str, max_share: float) -> AsyncIterator[None]:
        """Slow jobs first, at each server; when as many run as may, fast ones at the first. All are done at the end."""
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(geartrain.AsyncClient(url)) for url in urls]
            self.slow_jobs = SLOW * len(urls)
            for client in clients:
                await client.submit_many(client.order(self.slow_function, background=True) for _ in range(SLOW))
            async with self.worker(*urls, max_share=max_share):
                try:
                    await self.begun.wait()
                    await clients[0].submit_many(
                        clients[0].order(self.fast_function, background=True) for _ in range(FAST)
                    )
                    yield
                finally:
                    self.let_go.set()
                await self.all_fast.wait()
                await self.all_slow.wait()


def test_slow_jobs_leave_slots(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        scene = Scene(function)
        async with scene.played(server.url, max_share=0.5):
            await scene.all_fast.wait()
            assert scene.running == scene.most == SLOTS // 2
        assert scene.most == SLOTS // 2

    play(scenario)


def test_without_a_share_they_take_all(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        scene = Scene(function)
        async with scene.played(server.url, max_share=1.0):
            [fast] = (await gearmand.functions(server.url, scene.fast_function))["items"]
            assert (fast["queued"], fast["running"], scene.fast) == (FAST, 0, 0)
            assert scene.running == SLOTS

    play(scenario)


@pytest.fixture(scope="module")
def urls() -> Iterator[list[str]]:
    with serving.serve("--store", "memory", *LISTENS) as server:
        yield server.urls


@pytest.mark.parametrize("protocol", range(len(SCHEMES)), ids=SCHEMES)
def test_every_protocol(urls: list[str], protocol: int, function: str) -> None:
    async def scenario() -> None:
        scene = Scene(function)
        async with geartrain.AsyncClient(urls[0]) as client:
            await client.submit_many(client.order(scene.slow_function, background=True) for _ in range(SLOW))
            async with scene.worker(urls[protocol], max_share=0.25):
                try:
                    await scene.begun.wait()
                    await client.submit_many(client.order(scene.fast_function, background=True) for _ in range(FAST))
                    await scene.all_fast.wait()
                    assert scene.running == scene.most == SLOTS // 4
                finally:
                    scene.let_go.set()
        assert scene.most == SLOTS // 4

    play(scenario)


def test_share_is_over_all_servers(ours: serving.ServerProcess, urls: list[str], function: str) -> None:
    async def scenario() -> None:
        scene = Scene(function)
        async with scene.played(ours.url, urls[0], max_share=0.5):
            await scene.all_fast.wait()
            assert scene.running == scene.most == SLOTS // 2
        assert scene.most == SLOTS // 2

    play(scenario)


def test_function_with_a_share_comes_and_goes_while_it_works(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        ran = asyncio.Event()

        async def run(job: geartrain.Job) -> None:
            ran.set()

        async with (
            geartrain.AsyncClient(server.url) as client,
            geartrain.AsyncWorker(server.url, concurrency=4) as worker,
        ):
            for _ in range(2):
                worker.register(function, run, max_share=0.5)
                await client.submit(function, background=True)
                await ran.wait()
                ran.clear()
                worker.unregister(function)
            worker.register(function, run, max_share=0.5)
            with pytest.raises(ValueError, match="cannot have another share of the slots while the worker runs"):
                worker.register(function, run)

    play(scenario)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan")])
def test_shares_that_make_no_sense(share: float) -> None:
    worker = geartrain.AsyncWorker("gearman://127.0.0.1:9")
    with pytest.raises(ValueError, match="max_share is a share of the worker's slots, above 0 and at most 1, not"):
        worker.register("f", lambda job: None, max_share=share)
