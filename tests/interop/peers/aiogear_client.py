"""A client with the `aiogear` library. Its uniques, unless it is given one, are 16 random bytes."""

import asyncio

import aiogear
import contract
from aiogear.response import WorkComplete, WorkException, WorkFail

EVENTS = {WorkComplete: "complete", WorkFail: "fail", WorkException: "exception"}


async def submit(client: aiogear.Client, order: contract.Order, payload: bytes, suffix: str = "") -> str:
    names = {"high": "submit_job_high", "normal": "submit_job", "low": "submit_job_low"}
    send = getattr(client, names[order.priority] + suffix)
    created = await send(order.function, payload, uuid=order.unique or None)
    handle: str = created.handle
    return handle


async def run(client: aiogear.Client, order: contract.Order) -> None:
    await client.option_req("exceptions")
    _tell_end(await client.wait_job(await submit(client, order, order.payload)))


async def background(client: aiogear.Client, order: contract.Order) -> None:
    contract.tell("created", await submit(client, order, order.payload, "_bg"))


async def batch(client: aiogear.Client, order: contract.Order) -> None:
    """The library tells results apart by their order of arrival alone, so one worker must run the jobs.

    A result that is there already is forgotten unless it is asked for before the next turn of the loop.
    """
    ends = [client.wait_job(await submit(client, order, line)) for line in order.payload.splitlines()]
    for end in await asyncio.gather(*ends):
        _tell_end(end)


async def status(client: aiogear.Client, order: contract.Order) -> None:
    known = await client.get_status(order.function)
    contract.tell_status(known.known, known.running, known.numerator, known.denominator)


def _tell_end(end: WorkComplete | WorkFail | WorkException) -> None:
    contract.tell(EVENTS[type(end)], end[1] if len(end) > 1 else "")


async def main() -> None:
    order = contract.order()
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: aiogear.Client(loop), order.host, order.port)
    await {"run": run, "background": background, "batch": batch, "status": status}[order.verb](client, order)
    await client.close()


asyncio.run(main())
