"""SAQ: gathered submissions; a hundred at once in the worker, since with many more it stalls."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asked
import run_peer
import saq
import tasks

CONCURRENCY = 100
queue = saq.Queue.from_url(asked.URL, name="bench", max_concurrent_ops=100)


async def empty(context: Any) -> None:
    tasks.empty()


async def echo(context: Any, *, number: int) -> int:
    return tasks.echo(number)


async def fail_first(context: Any) -> None:
    tasks.fail_first(context["job"].attempts)


settings: dict[str, Any] = {"queue": queue, "functions": [empty, echo, fail_first], "concurrency": CONCURRENCY}


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[None]:
    await queue.connect()
    yield
    await queue.disconnect()


async def submit(size: int) -> None:
    await asyncio.gather(*(queue.enqueue("empty", ttl=-1) for _ in range(size)))


async def submit_failing(size: int) -> None:
    await asyncio.gather(*(queue.enqueue("fail_first", ttl=-1, retries=2, retry_delay=0) for _ in range(size)))


async def fetch(size: int) -> list[Any]:
    return await queue.map("echo", [{"number": number} for number in range(size)], timeout=60, ttl=60)


def work() -> None:
    run_peer.run(saq.Worker(**settings).start)


def work_many(processes: str) -> None:
    run_peer.command("-m", "saq", "peer_saq.settings", "--workers", processes)
