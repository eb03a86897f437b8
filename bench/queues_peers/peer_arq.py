"""arq: gathered submissions; as many at once in the worker as helps."""

import asyncio
from typing import Any

import arq
import submitting
from arq.connections import RedisSettings
from arq.worker import Worker

settings = RedisSettings(port=submitting.port(), max_connections=100)


async def empty(context: dict[Any, Any]) -> None:
    """Nothing."""


async def submit() -> None:
    pool = await arq.create_pool(settings)

    async def batch(size: int) -> None:
        await asyncio.gather(*(pool.enqueue_job("empty") for _ in range(size)))

    await submitting.report_async(batch, 100)  # more at once run out of connections
    await pool.aclose()


if submitting.ACTION == "submit":
    asyncio.run(submit())
else:
    asyncio.set_event_loop(asyncio.new_event_loop())
    Worker([empty], redis_settings=settings, max_jobs=500, poll_delay=0.05, keep_result=0).run()
