"""What the peers share: each measurement waits for a line on stdin, and ends with a line of JSON.

A peer is started as `peer_x.py MEASUREMENT URL ...` on an empty database:

    submit SECONDS SIZE    submit batches of this size for a while
    finish JOBS SETTING    fill the queue, then finish it with one worker process and this setting
    start SUBMITS          how long it takes from a submission to the start of the job by an idle worker

Before the part that counts, it prints `ready` and waits: the one who reads it looks up what PostgreSQL has used so far.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

MEASUREMENT, URL, ARGUMENTS = sys.argv[1], sys.argv[2], [float(word) for word in sys.argv[3:]]
PAYLOAD = "x" * 64
FILL = 1000  # jobs in a batch that fills the queue
PAUSE = 0.02  # seconds between two submits to an idle worker

Batch = Callable[[int], Awaitable[object]]


def ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def tell(count: int, seconds: float) -> None:
    print(json.dumps({"count": count, "seconds": seconds}), flush=True)


async def submit(batch: Batch) -> None:
    """Batches until the time is over; the first one only warms up."""
    seconds, size = ARGUMENTS[0], int(ARGUMENTS[1])
    await batch(size)
    ready()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        await batch(size)
        count += size
    tell(count, time.perf_counter() - began)


async def finish(batch: Batch, work: Callable[[int, int], Awaitable[object]]) -> None:
    """Fill the queue, and let `work(jobs, setting)` empty it; it returns when the last job is done."""
    jobs, setting = int(ARGUMENTS[0]), int(ARGUMENTS[1])
    for filled in range(0, jobs, FILL):
        await batch(min(FILL, jobs - filled))
    ready()
    began = time.perf_counter()
    await work(jobs, setting)
    tell(jobs, time.perf_counter() - began)


async def start(send: Callable[[float], Awaitable[object]], waits: list[float], settled: float = 1.0) -> None:
    """Submit the time, again and again, to a worker that notes in `waits` how long ago that was."""
    submits = int(ARGUMENTS[0])
    await asyncio.sleep(settled)  # until the worker listens
    ready()
    for _ in range(submits):
        await send(time.time())
        await asyncio.sleep(PAUSE)
    while len(waits) < submits:
        await asyncio.sleep(PAUSE)
    tell(submits, statistics.median(waits))


def run(main: Callable[[], Awaitable[None]]) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())  # type: ignore[arg-type]
