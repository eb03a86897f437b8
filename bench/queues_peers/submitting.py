"""What the peers share: submit batches for a while, and say how many there were.

A peer is started as `peer_x.py submit URL SECONDS` and prints how many tasks it submitted in how many seconds, or as
`peer_x.py work URL` and works until SIGTERM. Each submits in the quickest way that its library documents.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

ACTION, URL = sys.argv[1], sys.argv[2]
BATCH = 1000


def port() -> int:
    return int(URL.rpartition(":")[2].partition("/")[0])


def report(batch: Callable[[int], object]) -> None:
    """Submit whole batches until the time is over; the first one only warms up."""
    batch(BATCH)
    seconds, count = float(sys.argv[3]), 0
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        batch(BATCH)
        count += BATCH
    _tell(count, began, used)


async def report_async(batch: Callable[[int], Awaitable[object]], size: int = BATCH) -> None:
    """The same for a library with an event loop."""
    await batch(size)
    seconds, count = float(sys.argv[3]), 0
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        await batch(size)
        count += size
    _tell(count, began, used)


def _tell(count: int, began: float, used: float) -> None:
    took = {"seconds": time.perf_counter() - began, "processor": time.process_time() - used}
    print(json.dumps({"count": count, **took}))


def run(main: Callable[[], Awaitable[None]]) -> None:
    """On uvloop, if this peer's environment has it."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())  # type: ignore[arg-type]
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())  # type: ignore[arg-type]
