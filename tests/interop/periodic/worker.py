"""A worker: `worker.py ENTRYPOINT PREFIX`. It offers functions that begin with the prefix, and tells what it runs.

A job of `gate`, `lock` or `parts` goes on when a line with its name comes in. Jobs of `everywhere`, which has no
prefix, go to all workers that wait.
"""

import asyncio
import sys

import aio_periodic
import speech

SLOTS = 3
LOCK = "the lock"
gates = {}


async def passed(job):
    """Wait until the test lets this job go on."""
    gate = gates.setdefault(job.name, asyncio.Queue())
    await gate.get()


async def echo(job):
    await job.done(b"R:" + job.workload)


async def fail_once(job):
    if job.name in failed:
        await job.done(b"second time")
    else:
        failed.add(job.name)
        await job.fail()


failed = set()


async def twice_later(job):
    if job.payload.count < 2:
        await job.sched_later(1, 1)
    else:
        await job.done(b"at last")


async def gate(job):
    await passed(job)
    await job.done(b"passed")


async def lock(job):
    async def work():
        speech.tell(inside=job.name)
        await passed(job)
        speech.tell(outside=job.name)
        await job.done(b"had the lock")

    await job.with_lock(LOCK, 1, work)


async def parts(job):
    for part in (b"one", b"two"):
        await passed(job)
        await job.data(part)
    await passed(job)
    await job.done(b"whole")


async def everywhere(job):
    await job.done(b"everywhere")


TASKS = {task.__name__: task for task in (echo, fail_once, twice_later, gate, lock, parts)}


def told(task):
    async def run(job):
        speech.tell(ran=job.func_name, name=job.name, count=job.payload.count, workload=job.workload.decode())
        await task(job)

    return run


async def offer(worker, prefix):
    for name, task in TASKS.items():
        await worker.add_func(f"{prefix}-{name}", told(task))
    await worker.broadcast("everywhere", told(everywhere))


async def work(worker):
    if speech.TODAY:
        tasks.append(asyncio.create_task(worker.work(SLOTS)))
        return
    working = worker.work(SLOTS)
    if working is not None:
        await working


tasks = []


async def come_back(worker, prefix):
    """What a program around 0.2.8 does when its connection was lost: that version only connects again."""
    while True:
        await worker.add_lose_waiter()
        await offer(worker, prefix)
        await work(worker)
        speech.tell(back=True)


async def main():
    entrypoint, prefix = sys.argv[1:]
    worker = aio_periodic.Worker()
    await speech.connect(worker, entrypoint)
    await offer(worker, prefix)
    await work(worker)
    if hasattr(worker, "add_lose_waiter"):
        tasks.append(asyncio.create_task(come_back(worker, prefix)))
    await worker.ping()
    speech.tell(ready=True)
    async for order in speech.orders():
        gates.setdefault(order["pass"], asyncio.Queue()).put_nowait(None)


asyncio.run(main())
