"""The measurements of `geartrain bench`: jobs of one function, through the library, over any protocol.

Workers are separate processes, so that they do not slow down the client. Each measurement counts jobs and errors, and
times every job.
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


class BenchPlan(NamedTuple):
    """The parameters of a measurement."""

    url: str
    function: str
    jobs: int
    in_flight: int
    workers: int
    payload: bytes


class BenchResult:
    """Jobs, latencies and errors of a measurement."""

    def __init__(self) -> None:
        self.done = 0
        self.latencies: list[float] = []  # of the jobs that are done; empty for a drain
        self.errors = 0
        self.first_error = ""
        self.seconds = 0.0

    def failed(self, error: Exception) -> None:
        self.errors += 1
        self.first_error = self.first_error or f"{type(error).__name__}: {error}"

    def summary(self) -> dict[str, Any]:
        """Rate and percentiles for the report."""
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


async def round_trips(plan: BenchPlan, report: Report) -> BenchResult:
    """Foreground jobs, from submit to result."""
    async with AsyncClient(plan.url) as client, _workers(plan):
        await _until_served(client, plan.function)

        async def one() -> None:
            job = await client.submit(plan.function, plan.payload)
            await job.result(_ANSWER)

        return await _measure(plan, one, report)


async def _until_served(client: AsyncClient, function: str) -> None:
    """Wait until a worker answers: some servers refuse jobs of a function that has no worker."""
    async with asyncio.timeout(_ANSWER):
        while True:
            try:
                await client.run(function, b"")
                return
            except NoWorkersError:
                await asyncio.sleep(0.05)


async def background_submits(plan: BenchPlan, report: Report) -> BenchResult:
    """Background jobs, from submit to acknowledgement, without workers."""
    async with AsyncClient(plan.url) as client:

        async def one() -> None:
            await client.submit(plan.function, plan.payload, background=True)

        return await _measure(plan, one, report)


async def drain(plan: BenchPlan, report: Report) -> BenchResult:
    """One worker empties the queue that the background submits filled."""
    result = BenchResult()
    finished = asyncio.Event()
    worker = AsyncWorker(plan.url, concurrency=max(plan.in_flight // 2, 1), name="geartrain bench")

    async def run(_: Any) -> bytes:
        result.done += 1
        report(result.done)
        if result.done >= plan.jobs:
            finished.set()
        return b""

    worker.register(plan.function, run)
    started = time.perf_counter()
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait_for(finished.wait(), max(_ANSWER, plan.jobs / 100))
    except TimeoutError as error:
        result.failed(error)
    result.seconds = time.perf_counter() - started
    worker.stop()
    await running
    return result


async def _measure(plan: BenchPlan, one: Callable[[], Awaitable[None]], report: Report) -> BenchResult:
    """Keep `in_flight` jobs under way until all are done."""
    result = BenchResult()
    left = iter(range(plan.jobs))

    async def submit_in_turn() -> None:
        for _ in left:
            begun = time.perf_counter()
            try:
                await one()
            except (ClientError, OSError) as error:
                result.failed(error)
            else:
                result.done += 1
                result.latencies.append(time.perf_counter() - begun)
                report(result.done)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(plan.in_flight, plan.jobs)):
            group.create_task(submit_in_turn())
    result.seconds = time.perf_counter() - started
    return result


@contextlib.asynccontextmanager
async def _workers(plan: BenchPlan) -> AsyncIterator[None]:
    """Worker processes that return the payload."""
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
    """A worker process; runs until it is terminated."""

    async def serve() -> None:
        worker = AsyncWorker(url, concurrency=concurrency, name="geartrain bench")
        worker.register(function, _return_payload)
        await worker.run()

    asyncio.run(serve())


async def _return_payload(job: Any) -> bytes:
    payload: bytes = job.payload
    return payload
