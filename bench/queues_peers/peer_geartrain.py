"""Geartrain: tasks of an app, submitted many at once; five hundred at once in the worker."""

import asyncio

import asked
import run_peer
import tasks

from geartrain import App, Backoff, current_task

SUBMIT_BATCH = 20_000
CONCURRENCY = 500
app = App("bench", asked.URL)


@app.task
async def empty() -> None:
    tasks.empty()


@app.task
async def echo(number: int) -> int:
    return tasks.echo(number)


@app.task
async def add(numbers: list[int]) -> int:
    return tasks.add(numbers)


@app.task(retries=1, backoff=Backoff(base=0, jitter=False))
async def fail_first() -> None:
    tasks.fail_first(current_task().attempt)


def connected() -> App:
    return app


async def submit(size: int) -> None:
    await app.submit_many(empty.bind() for _ in range(size))


async def submit_failing(size: int) -> None:
    await app.submit_many(fail_first.bind() for _ in range(size))


async def fetch(size: int) -> list[int]:
    handles = await app.submit_many(echo.bind(number) for number in range(size))
    return list(await asyncio.gather(*(handle.result(timeout=60) for handle in handles)))


async def chord(size: int) -> int:
    submitted = await app.chord((echo.bind(number) for number in range(size)), add.bind)
    return await submitted.result(timeout=60)


def work() -> None:
    app.run(concurrency=CONCURRENCY)


def work_many(processes: str) -> None:
    options = ["--processes", processes, "--concurrency", str(CONCURRENCY), "--log-level", "critical"]
    run_peer.command("-m", "geartrain", "work", "peer_geartrain:app", *options)
