"""SAQ: gathered submissions; a hundred at once in the worker, since with many more it stalls."""

import asyncio
from typing import Any

import saq
import submitting

queue = saq.Queue.from_url(submitting.URL, name="bench", max_concurrent_ops=100)


async def empty(context: Any) -> None:
    """Nothing."""


async def submit() -> None:
    await queue.connect()

    async def batch(size: int) -> None:
        await asyncio.gather(*(queue.enqueue("empty", ttl=-1) for _ in range(size)))

    await submitting.report_async(batch)
    await queue.disconnect()


if submitting.ACTION == "submit":
    submitting.run(submit)
else:
    worker = saq.Worker(queue, functions=[("empty", empty)], concurrency=100)
    submitting.run(worker.start)
