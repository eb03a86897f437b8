"""procrastinate: batch_defer for many at once; SETTING is the worker's concurrency. Finished jobs are deleted."""

import asyncio
import logging
import time

import measuring
import procrastinate

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=measuring.URL, max_size=10))
waits: list[float] = []
left = 0
finished = asyncio.Event()


@app.task(queue="bench")
async def empty(payload: str) -> None:
    global left
    left -= 1
    if not left:
        finished.set()


@app.task(queue="bench")
async def note(at: float) -> None:
    waits.append(time.time() - at)


async def batch(size: int) -> None:
    if size == 1:
        await empty.defer_async(payload=measuring.PAYLOAD)
    else:
        await empty.batch_defer_async(*({"payload": measuring.PAYLOAD} for _ in range(size)))


def working(concurrency: int) -> "asyncio.Task[None]":
    return asyncio.create_task(
        app.run_worker_async(concurrency=concurrency, install_signal_handlers=False, delete_jobs="always")
    )


async def work(jobs: int, concurrency: int) -> None:
    global left
    left = jobs
    worker = working(concurrency)
    await finished.wait()
    worker.cancel()


async def start() -> None:
    worker = working(10)
    await measuring.start(lambda at: note.defer_async(at=at), waits)
    worker.cancel()


async def main() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        match measuring.MEASUREMENT:
            case "submit":
                await measuring.submit(batch)
            case "finish":
                await measuring.finish(batch, work)
            case "start":
                await start()


logging.disable(logging.CRITICAL)
measuring.run(main)
