"""What `geartrain bench` does to a server: jobs of an own function, through the library, by any protocol.

Workers are processes of their own, so that the client's rate is not theirs. Each measurement counts what was asked and
answered, how long every answer took, and what went wrong.
"""

import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple

from geartrain.client.async_client import AsyncClient
from geartrain.client.async_worker import AsyncWorker
from geartrain.errors import ClientError, NoWorkersError

_PERCENTILES: Final = (("p50", 0.50), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
_ANSWER: Final = 30.0  # a job that takes longer than this many seconds counts as an error

Report = Callable[[int], None]


class Plan(NamedTuple):
    """What to do, and how much of it."""

    url: str
    function: str
    jobs: int
    in_flight: int
    workers: int
    payload: bytes


class BenchResult:
    """What was seen."""

    def __init__(self) -> None:
        self.done = 0
        self.latencies: list[float] = []  # of those that were done, where one by one can be timed
        self.errors = 0
        self.first_error = ""
        self.seconds = 0.0

    def failed(self, error: Exception) -> None:
        self.errors += 1
        self.first_error = self.first_error or f"{type(error).__name__}: {error}"

    def summary(self) -> dict[str, Any]:
        """Rates and percentiles, as they are shown."""
        ordered = sorted(self.latencies)
        last = len(ordered) - 1
        at = {name: ordered[min(int(len(ordered) * share), last)] if ordered else None for name, share in _PERCENTILES}
        return {
            "jobs": self.done,
            "seconds": self.seconds,
            "rate": self.done / self.seconds if self.seconds else 0.0,
            **at,
            "errors": self.errors,
            "first_error": self.first_error,
        }


async def round_trips(plan: Plan, report: Report) -> BenchResult:
    """Foreground jobs, from the submission to the result, with so many under way at once."""
    async with AsyncClient(plan.url) as client, _workers(plan):
        await _until_served(client, plan.function)

        async def one() -> None:
            job = await client.submit(plan.function, plan.payload)
            await job.result(_ANSWER)

        return await _measure(plan, one, report)


async def _until_served(client: AsyncClient, function: str) -> None:
    """Until a worker has answered; some servers refuse jobs that nobody offers to do yet."""
    async with asyncio.timeout(_ANSWER):
        while True:
            try:
                await client.run(function, b"")
                return
            except NoWorkersError:
                await asyncio.sleep(0.05)


async def background_submits(plan: Plan, report: Report) -> BenchResult:
    """Background jobs, from the submission to the acknowledgement; nobody works on them meanwhile."""
    async with AsyncClient(plan.url) as client:

        async def one() -> None:
            await client.submit(plan.function, plan.payload, background=True)

        return await _measure(plan, one, report)


async def drain(plan: Plan, report: Report) -> BenchResult:
    """How fast workers empty the queue that the submits have filled; there is no latency to speak of."""
    tally = BenchResult()
    finished = asyncio.Event()
    worker = AsyncWorker(plan.url, concurrency=max(plan.in_flight // 2, 1), name="geartrain bench")

    async def run(_: Any) -> bytes:
        tally.done += 1
        report(tally.done)
        if tally.done >= plan.jobs:
            finished.set()
        return b""

    worker.register(plan.function, run)
    started = time.perf_counter()
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait_for(finished.wait(), max(_ANSWER, plan.jobs / 100))
    except TimeoutError as error:
        tally.failed(error)
    tally.seconds = time.perf_counter() - started
    worker.stop()
    await running
    return tally


async def _measure(plan: Plan, one: Callable[[], Awaitable[None]], report: Report) -> BenchResult:
    """Keep so many under way until all are done."""
    tally = BenchResult()
    left = iter(range(plan.jobs))

    async def keep_asking() -> None:
        for _ in left:
            begun = time.perf_counter()
            try:
                await one()
            except (ClientError, OSError) as error:
                tally.failed(error)
            else:
                tally.done += 1
                tally.latencies.append(time.perf_counter() - begun)
                report(tally.done)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(plan.in_flight, plan.jobs)):
            group.create_task(keep_asking())
    tally.seconds = time.perf_counter() - started
    return tally


@contextlib.asynccontextmanager
async def _workers(plan: Plan) -> AsyncIterator[None]:
    """Worker processes that give back what they get."""
    spawn = multiprocessing.get_context("spawn")
    share = max(plan.in_flight // plan.workers, 1)
    processes = [
        spawn.Process(target=_echo, args=(plan.url, plan.function, share), daemon=True) for _ in range(plan.workers)
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            await asyncio.to_thread(process.join)
            process.close()


def _echo(url: str, function: str, concurrency: int) -> None:
    """A worker process, until it is told to stop."""

    async def serve() -> None:
        worker = AsyncWorker(url, concurrency=concurrency, name="geartrain bench")
        worker.register(function, _give_back)
        await worker.run()

    asyncio.run(serve())


async def _give_back(job: Any) -> bytes:
    payload: bytes = job.payload
    return payload
