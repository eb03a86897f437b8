"""arq: gathered submissions; as many at once in the worker as helps."""

import asyncio
import contextlib
import multiprocessing
import signal
from collections.abc import AsyncIterator
from typing import Any

import arq
import asked
import tasks
from arq.connections import ArqRedis, RedisSettings
from arq.worker import Worker

SUBMIT_BATCH = 100  # more at once run out of connections
POLL = 0.01  # seconds between two looks for a result; the default is 0.5
settings = RedisSettings(port=asked.port(), max_connections=SUBMIT_BATCH)


async def empty(context: dict[Any, Any]) -> None:
    tasks.empty()


async def echo(context: dict[Any, Any], number: int) -> int:
    return tasks.echo(number)


async def fail_first(context: dict[Any, Any]) -> None:
    try:
        tasks.fail_first(context["job_try"])
    except tasks.FirstAttemptError as error:
        raise arq.Retry(defer=0) from error


class Pool:
    """The connections of the submitter."""

    redis: ArqRedis


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[None]:
    Pool.redis = await arq.create_pool(settings)
    yield
    await Pool.redis.aclose()


async def submit(size: int) -> None:
    await _submit("empty", size)


async def submit_failing(size: int) -> None:
    await _submit("fail_first", size)


async def _submit(name: str, size: int) -> None:
    for at in range(0, size, SUBMIT_BATCH):
        await asyncio.gather(*(Pool.redis.enqueue_job(name) for _ in range(min(SUBMIT_BATCH, size - at))))


async def fetch(size: int) -> list[Any]:
    limit = asyncio.Semaphore(SUBMIT_BATCH)

    async def one(number: int) -> Any:
        async with limit:
            job = await Pool.redis.enqueue_job("echo", number)
            assert job is not None
            return await job.result(timeout=60, poll_delay=POLL)

    return list(await asyncio.gather(*map(one, range(size))))


def work() -> None:
    asyncio.set_event_loop(asyncio.new_event_loop())
    functions = [empty, echo, fail_first]
    kept = 60 if asked.RESULTS else 0
    Worker(functions, redis_settings=settings, max_jobs=500, poll_delay=0.05, keep_result=kept).run()


def work_many(processes: str) -> None:
    """It has no command for several processes: as many as if so many `arq` commands were started."""
    workers = [multiprocessing.Process(target=work) for _ in range(int(processes))]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    for worker in workers:
        worker.start()
    signal.sigwait({signal.SIGTERM})
    for worker in workers:
        worker.kill()
