"""A worker of a soak, as a process of its own: it can be stopped and killed.

    python -m campaigns.soak.worker URL LOG

It writes the key of each job to its log before it does the work, with one write that survives its own kill.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable

import geartrain
from campaigns.soak.job import FUNCTION, SoakJob

CONCURRENCY = 4


def performer(log: int) -> Callable[[geartrain.Job], bytes]:
    """The function of the worker, which writes to this descriptor."""

    def perform(job: geartrain.Job) -> bytes:
        work = SoakJob.parse(job.payload)
        os.write(log, work.key.encode() + b"\n")
        time.sleep(work.milliseconds / 1000)
        if work.fails:
            raise RuntimeError("this job fails each time")
        return work.key.encode()

    return perform


def main(url: str, path: str) -> None:
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    worker = geartrain.AsyncWorker(url, concurrency=CONCURRENCY)
    worker.register(FUNCTION, performer(log))
    asyncio.run(worker.run())


if __name__ == "__main__":
    main(*sys.argv[1:])
