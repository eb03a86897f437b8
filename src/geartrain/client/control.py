"""Asking a Geartrain server about itself, and steering it, by whatever protocol a client speaks.

The server answers jobs of one reserved function by itself: the payload is a JSON object that names a verb and its
arguments, the result another one with the answer. So whoever can submit a job can also see and steer.

    async with geartrain.AsyncClient("gearman://127.0.0.1:4730") as client:
        answer = await control.ask(client, "pause", function="reverse")
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from geartrain.client import job_events
from geartrain.client.async_client import AsyncClient
from geartrain.errors import AdminError, JobTimeoutError, ServerGoneError

FUNCTION: Final = "geartrain.control"
# The server answers at once, so one that has not answered by now has no such function.
PATIENCE: Final = 10.0


async def ask(client: AsyncClient, verb: str, patience: float = PATIENCE, **arguments: Any) -> Any:
    """The server's answer, as plain JSON values; a SteeringError if it says no."""
    job = await client.submit(FUNCTION, msgspec.json.encode({"do": verb, **arguments}))
    try:
        reply = msgspec.json.decode(await job.result(patience))
    except JobTimeoutError:
        raise ServerGoneError(
            f"no answer within {patience:g} seconds; is this a Geartrain server, with its `control` setting on?"
        ) from None
    return answer_in(reply)


async def tail(client: AsyncClient, **arguments: Any) -> AsyncIterator[Any]:
    """What happens to jobs, as it happens, until the caller has had enough."""
    job = await client.submit(FUNCTION, msgspec.json.encode({"do": "tail", **arguments}))
    async for event in job.events():
        if isinstance(event, job_events.Data):
            for line in event.data.splitlines():
                yield msgspec.json.decode(line)
        elif isinstance(event, job_events.Completed):
            answer_in(msgspec.json.decode(event.result))


def answer_in(reply: Any) -> Any:
    """The answer in a reply; the problem in it is raised."""
    if "error" in reply:
        raise AdminError(reply["error"]["kind"], reply["error"]["text"])
    return reply["answer"]
