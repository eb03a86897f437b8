"""Asking a Geartrain server about itself, and steering it, by whatever protocol a client speaks.

The server answers jobs of one reserved function by itself: the payload is a JSON object that names a verb and its
arguments, the result another one with the answer. So whoever can submit a job can also see and steer.

    async with geartrain.AsyncClient("gearman://127.0.0.1:4730") as client:
        answer = await control.ask(client, "pause", function="reverse")
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from geartrain.client import job_events
from geartrain.client.async_client import AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.errors import AdminError, JobTimeoutError, ServerGoneError, UnsupportedError

FUNCTION: Final = "geartrain.control"
# The server answers at once, so one that has not answered by now has no such function.
PATIENCE: Final = 10.0
# Which URLs `tail` works with: those of HTTP, and of protocols that can send parts of a result.
TAIL_URLS: Final = "gearman://, periodic:// or http://"


async def ask(client: AsyncClient, verb: str, patience: float = PATIENCE, **arguments: Any) -> Any:
    """The server's answer, as plain JSON values; a SteeringError if it says no."""
    job = await client.submit(FUNCTION, msgspec.json.encode({"do": verb, **arguments}))
    try:
        reply = msgspec.json.decode(await job.result(patience))
    except JobTimeoutError:
        raise ServerGoneError(
            f"no answer within {patience:g} seconds; is this a Geartrain server, with its `control` setting on?"
        ) from None
    except ServerGoneError as error:
        raise _connection_lost(job) from error
    return answer_in(reply)


async def tail(client: AsyncClient, function: str = "", what: Sequence[str] = ()) -> AsyncIterator[Any]:
    """What happens to jobs, as it happens, until the server stops; `{"missed": n}` where events were left out.

    Over HTTP it is the API's event stream; otherwise a control job that sends the events as parts of its result. An
    UnsupportedError where the protocol has neither.
    """
    if client.protocol == "http":
        async for event in _http_events(client, function, what):
            yield event
        return
    if not client.capabilities.data:
        raise UnsupportedError(f"events cannot be followed over {client.protocol}; use {TAIL_URLS}")
    order = msgspec.json.encode({"do": "tail", "function": function, "what": list(what)})
    job = await client.submit(FUNCTION, order)
    try:
        async for news in job.events():
            if isinstance(news, job_events.Data):
                for line in news.data.splitlines():
                    yield msgspec.json.decode(line)
            elif isinstance(news, job_events.Completed):
                answer_in(msgspec.json.decode(news.result))
    except ServerGoneError as error:
        raise _connection_lost(job) from error


async def _http_events(client: AsyncClient, function: str, what: Sequence[str]) -> AsyncIterator[Any]:
    from geartrain.client.protocols.http.client import Client

    connection = await client.connection()
    assert isinstance(connection, Client)
    async for event in connection.job_events(function, what):
        yield event


def _connection_lost(job: AsyncJob) -> ServerGoneError:
    return ServerGoneError(f"the connection to {job.server} was lost")


def answer_in(reply: Any) -> Any:
    """The answer in a reply; the problem in it is raised."""
    if "error" in reply:
        raise AdminError(reply["error"]["kind"], reply["error"]["text"])
    return reply["answer"]
