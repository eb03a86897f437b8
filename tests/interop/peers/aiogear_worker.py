"""A worker with the `aiogear` library, which knows text only."""

import asyncio
import sys

import aiogear
import contract
from aiogear.worker import JobInfo


def reverse(job: JobInfo) -> str:
    workload: str = job.workload
    return workload[::-1]


def empty(job: JobInfo) -> str:
    return ""


def die(job: JobInfo) -> str:
    raise RuntimeError("it broke")


def gate(job: JobInfo) -> str:
    contract.wait_at_gate(job.workload)
    workload: str = job.workload
    return workload


FUNCTIONS = (reverse, empty, die, gate)


async def main() -> None:
    host, port, prefix = sys.argv[1:]
    loop = asyncio.get_running_loop()
    named = [(function, f"{prefix}-{function.__name__}") for function in FUNCTIONS]
    _, worker = await loop.create_connection(lambda: aiogear.Worker(*named, loop=loop), host, int(port))
    contract.tell("ready")
    await worker.main_task


asyncio.run(main())
