"""A client: `client.py ENTRYPOINT`. Each order is answered by a line with its number and a result or an error."""

import asyncio
import sys

import aio_periodic
import speech


def job(order):
    return aio_periodic.Job(
        order["function"],
        order["name"],
        order.get("workload", "").encode(),
        order.get("run_at", 0),
        order.get("count", 0),
        order.get("timeout", 0),
    )


async def submit(client, order):
    return await (client.submit_job(job=job(order)) if speech.TODAY else client.submit_job(job(order)))


async def run(client, order):
    result = await (client.run_job(job=job(order)) if speech.TODAY else client.run_job(job(order)))
    return result.decode()


async def stream(client, order):
    result = await client.run_job(job=job(order), stream=lambda part: speech.tell(part=part.decode()))
    return result.decode()


async def status(client, order):
    return (await client.status()).get(order["function"])


async def remove(client, order):
    return await client.remove_job(order["function"], order["name"])


async def drop(client, order):
    return await client.drop_func(order["function"])


async def ping(client, order):
    return await client.ping()


ACTS = {act.__name__: act for act in (submit, run, stream, status, remove, drop, ping)}


async def carry_out(client, order):
    try:
        result = await asyncio.wait_for(ACTS[order["do"]](client, order), 15)
    except (Exception, asyncio.CancelledError) as error:
        speech.tell(number=order["number"], error=repr(error))
    else:
        speech.tell(number=order["number"], result=result)


async def main():
    client = aio_periodic.Client()
    await speech.connect(client, sys.argv[1])
    speech.tell(ready=True)
    tasks = set()
    async for order in speech.orders():
        tasks.add(asyncio.create_task(carry_out(client, order)))


asyncio.run(main())
