"""Workers to be killed. For every line `sync|aio URL FUNCTION LEASE` on stdin a worker process is made, and its number
is printed. They are forked, since a new Python for each would take most of the time of the tests."""

import asyncio
import os
import signal
import sys

from geartrain.client import gearmonkey

ROUNDS = 20  # of a second; nobody needs them for longer


def work(payload: bytes) -> bytes:
    return payload.upper() + b" by a victim"


def run(url: str, function: str, lease: float) -> None:
    worker = gearmonkey.Worker(url, work, lease=lease)
    worker.accept(function)
    for _ in range(ROUNDS):
        worker.run_one(1)


async def run_async(url: str, function: str, lease: float) -> None:
    worker = gearmonkey.AsyncWorker(url, work, lease=lease)
    await worker.accept(function)
    for _ in range(ROUNDS):
        await worker.run_one(1)


def live(kind: str, url: str, function: str, lease: str) -> None:
    if kind == "aio":
        asyncio.run(run_async(url, function, float(lease)))
    else:
        run(url, function, float(lease))


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                live(*line.split())
            finally:
                os._exit(0)
        print(child, flush=True)


main()
