"""pgqueuer on asyncpg: enqueue with lists for many at once; SETTING is the worker's batch_size."""

import asyncio
import logging
import time

import asyncpg
import measuring
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

PAYLOAD = measuring.PAYLOAD.encode()
waits: list[float] = []


async def queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(measuring.URL)))


async def queuer() -> PgQueuer:
    made = PgQueuer(AsyncpgDriver(await asyncpg.connect(measuring.URL)))

    @made.entrypoint("empty")
    async def empty(job: Job) -> None:
        """Nothing."""

    @made.entrypoint("note")
    async def note(job: Job) -> None:
        waits.append(time.time() - float(job.payload or b"0"))

    return made


async def main() -> None:
    queue = await queries()
    await queue.install()

    async def batch(size: int) -> None:
        if size == 1:
            await queue.enqueue("empty", PAYLOAD)
        else:
            await queue.enqueue(["empty"] * size, [PAYLOAD] * size, [0] * size)

    async def work(jobs: int, size: int) -> None:
        await (await queuer()).qm.run(batch_size=size, mode=QueueExecutionMode.drain)

    match measuring.MEASUREMENT:
        case "submit":
            await measuring.submit(batch)
        case "finish":
            await measuring.finish(batch, work)
        case "start":
            worker = await queuer()
            running = asyncio.create_task(worker.qm.run(batch_size=10))
            await measuring.start(lambda at: queue.enqueue("note", str(at).encode()), waits)
            worker.qm.shutdown.set()
            await asyncio.wait([running], timeout=5)


logging.disable(logging.CRITICAL)
measuring.run(main)
