"""Workers to be killed. For every line `sync|aio|link URL FUNCTION LEASE` on stdin a worker process is made, and its
number is printed. They are forked, since a new Python for each would take most of the time of the tests."""

import asyncio
import os
import signal
import sys

from geartrain import address
from geartrain.client import gearmonkey
from geartrain.client.protocols.base import Assignment
from geartrain.client.protocols.gearmonkey import Worker, worker
from geartrain.client.redis import worker_flow

ROUNDS = 3  # none is needed for more
# They wait for longer than others do, so that no wait ends by itself while a test counts what is answered.
SECONDS = 120
worker_flow.POP_SECONDS = worker.POP_SECONDS = SECONDS


def work(payload: bytes) -> bytes:
    return payload.upper() + b" by a killed worker"


def run(url: str, function: str, lease: float) -> None:
    worker = gearmonkey.Worker(url, work, lease=lease)
    worker.accept(function)
    for _ in range(ROUNDS):
        worker.run_one(SECONDS)


async def run_async(url: str, function: str, lease: float) -> None:
    worker = gearmonkey.AsyncWorker(url, work, lease=lease)
    await worker.accept(function)
    for _ in range(ROUNDS):
        await worker.run_one(SECONDS)


class Hands:
    """Works at once for a link of the general library."""

    link: Worker

    def assigned(self, job: Assignment) -> None:
        self.link.complete(job, work(job.payload))

    def revoked(self, job: Assignment) -> None:
        pass


async def run_link(url: str, function: str, lease: float) -> None:
    Worker.lease = lease
    hands = Hands()
    hands.link = Worker(address.parse(url), print, hands, b"", 1)
    await hands.link.open({function.encode(): 0.0})
    await asyncio.sleep(ROUNDS * SECONDS)


def live(kind: str, url: str, function: str, lease: str) -> None:
    if kind == "sync":
        run(url, function, float(lease))
    else:
        asyncio.run({"aio": run_async, "link": run_link}[kind](url, function, float(lease)))


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
