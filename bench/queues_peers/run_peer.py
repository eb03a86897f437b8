"""Run one peer, which is a module beside this one:

    BENCH_ROW=plain BENCH_URL=redis://127.0.0.1:6379/0 python run_peer.py peer_rq submit 3

    submit SECONDS        submit empty tasks, in the quickest way that the library documents
    fail COUNT            submit an empty task, and this many that fail once
    fetch SECONDS COUNT   submit this many tasks, fetch their results, and so on; a worker has to run
    chord SECONDS COUNT   submit this many tasks and one that gets all results, wait for its result, and so on
    work                  be a worker, in one process, until SIGTERM
    work-many PROCESSES   be a worker with so many processes, in the library's own way

The first four print what they did. A peer has a function for each, which gets the number of tasks; it is a coroutine
where the library has an event loop, and `connected` is then a context that the submissions run in.
"""

import asyncio
import contextlib
import importlib
import inspect
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

BATCH = 1000  # tasks submitted between two looks at the clock; a peer may have a SUBMIT_BATCH of its own


async def submit(peer: ModuleType, seconds: str) -> None:
    await timed(peer.submit, getattr(peer, "SUBMIT_BATCH", BATCH), float(seconds))


async def fail(peer: ModuleType, count: str) -> None:
    await finished(peer.submit(1))
    await finished(peer.submit_failing(int(count)))


async def fetch(peer: ModuleType, seconds: str, count: str) -> None:
    async def checked(size: int) -> None:
        results = await finished(peer.fetch(size))
        if sorted(results) != list(range(size)):
            raise SystemExit(f"{size} tasks, and these results: {results}")

    await timed(checked, int(count), float(seconds))


async def chord(peer: ModuleType, seconds: str, count: str) -> None:
    async def checked(size: int) -> None:
        total = await finished(peer.chord(size))
        if total != sum(range(size)):
            raise SystemExit(f"a chord of {size} tasks, and this result: {total}")

    await timed(checked, int(count), float(seconds))


async def timed(batch: Callable[[int], object], size: int, seconds: float) -> None:
    """Whole batches until the time is over; the first one only warms up."""
    await finished(batch(size))
    count, began, used = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        await finished(batch(size))
        count += size
    took = {"seconds": time.perf_counter() - began, "processor": time.process_time() - used}
    print(json.dumps({"count": count, **took}))


async def finished(result: Any) -> Any:
    """What a function or a coroutine returned."""
    return await result if inspect.isawaitable(result) else result


SUBMITTING: dict[str, Callable[..., Awaitable[None]]] = {
    "submit": submit, "fail": fail, "fetch": fetch, "chord": chord,
}  # fmt: skip


def command(*words: str) -> None:
    """Become a library's own command."""
    os.execv(sys.executable, [sys.executable, *words])


def run(main: Callable[[], Any]) -> None:
    """On uvloop, if this peer's environment has it."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def main() -> None:
    name, action, *arguments = sys.argv[1:]
    logging.disable(logging.CRITICAL)  # a line for each attempt that fails is not what is measured
    peer = importlib.import_module(name)
    if action in SUBMITTING:

        async def inside() -> None:
            async with getattr(peer, "connected", contextlib.nullcontext)():
                await SUBMITTING[action](peer, *arguments)

        run(inside)
    elif action == "work":
        peer.work()
    else:
        peer.work_many(*arguments)


if __name__ == "__main__":
    main()
