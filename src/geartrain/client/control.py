"""Inspect and control a Geartrain server, over any protocol.

The server itself runs the jobs of one reserved function: the payload is a JSON object with a verb and its arguments,
the result a JSON object with the answer. So a program that can submit jobs can also inspect and control the server.

    async with geartrain.AsyncClient("gearman://127.0.0.1:4730") as client:
        answer = await control.ask(client, "pause", function="reverse")
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from geartrain.client import job_events
from geartrain.client.async_client import AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.client.job_control import ANSWER_SECONDS as ANSWER_SECONDS
from geartrain.client.job_control import FUNCTION as FUNCTION
from geartrain.client.job_control import answer_in as answer_in
from geartrain.errors import JobTimeoutError, ServerGoneError, UnsupportedError

# The URLs that `tail` works with: HTTP, and protocols that can send parts of a result.
TAIL_URLS: Final = "gearman://, periodic://, periodic+unix:// or http://"


class Reply(NamedTuple):
    """The answer to a verb, as plain JSON values."""

    answer: Any
    unanswered: list[str]  # servers of a cluster that were asked too, and have not answered


async def ask(client: AsyncClient, verb: str, /, answer_within: float = ANSWER_SECONDS, **arguments: Any) -> Any:
    """The server's answer to a verb, as plain JSON values; an AdminError if it refuses."""
    return (await ask_cluster(client, verb, answer_within, **arguments)).answer


async def ask_cluster(
    client: AsyncClient, verb: str, /, answer_within: float = ANSWER_SECONDS, **arguments: Any
) -> Reply:
    """The same, with the names of servers whose part is missing in it."""
    job = await client.submit(FUNCTION, msgspec.json.encode({"do": verb, **arguments}))
    try:
        reply = msgspec.json.decode(await job.result(answer_within))
    except JobTimeoutError:
        raise ServerGoneError(
            f"no answer within {answer_within:g} seconds; is this a Geartrain server, with its `control` setting on?"
        ) from None
    except ServerGoneError as error:
        raise _connection_lost(job) from error
    return Reply(answer_in(reply), reply.get("unanswered", []))


async def tail(
    client: AsyncClient, function: str = "", what: Sequence[str] = (), *, local: bool = False
) -> AsyncIterator[Any]:
    """The server's job events, as they happen, until it stops; `{"missed": n}` where events were dropped.

    HTTP has an event stream; other protocols use a control job that sends the events as parts of its result. Where
    the protocol supports neither, an UnsupportedError is raised. With `local`, the other servers of a cluster are left
    out.
    """
    if client.protocol == "http":
        async for event in _http_events(client, function, what, local):
            yield event
        return
    if not client.capabilities.data:
        raise UnsupportedError(f"events cannot be followed over {client.protocol}; use {TAIL_URLS}")
    only = {"local": True} if local else {}
    order = msgspec.json.encode({"do": "tail", "function": function, "what": list(what), **only})
    job = await client.submit(FUNCTION, order)
    try:
        async for event in job.events():
            if isinstance(event, job_events.Data):
                for line in event.data.splitlines():
                    yield msgspec.json.decode(line)
            elif isinstance(event, job_events.Completed):
                answer_in(msgspec.json.decode(event.result))
    except ServerGoneError as error:
        raise _connection_lost(job) from error


async def _http_events(client: AsyncClient, function: str, what: Sequence[str], local: bool) -> AsyncIterator[Any]:
    from geartrain.client.protocols.http.client import Client

    connection = await client.connection()
    assert isinstance(connection, Client)
    async for event in connection.job_events(function, what, local):
        yield event


def _connection_lost(job: AsyncJob) -> ServerGoneError:
    return ServerGoneError(f"the connection to {job.server} was lost")
