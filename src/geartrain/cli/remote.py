"""How the verbs that talk to a server find it, ask it, and give up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

import typer

from geartrain.address import DEFAULT_PORTS

T = TypeVar("T")

USUAL: Final = f"gearman://127.0.0.1:{DEFAULT_PORTS['gearman']}"
VARIABLE: Final = "GEARTRAIN_SERVER"
# People wait in front of a terminal: a server that cannot be reached is said soon.
PATIENCE: Final = 2.0

_OPTION: Final[Any] = typer.Option(
    "--server",
    "-s",
    metavar="URL",
    envvar=VARIABLE,
    help="The server, by any protocol: gearman, danga, periodic, memodb+tcp, gearmonkey or http.",
)
Server = Annotated[str, _OPTION]
OptionalServer = Annotated[str | None, _OPTION]
Json = Annotated[bool, typer.Option("--json", help="JSON, for machines.")]


def ask(server: str, verb: str, **arguments: Any) -> Any:
    """One question to a server, and its answer."""

    async def question(client: Any) -> Any:
        from geartrain.client import control

        return await control.ask(client, verb, **arguments)

    return with_client(server, question)


def with_client(server: str, use: Callable[[Any], Awaitable[T]]) -> T:
    """Do something with a client of that server."""

    async def session() -> T:
        from geartrain.client.async_client import AsyncClient

        async with AsyncClient(*server.split(","), patience=PATIENCE) as client:
            return await use(client)

    return asyncio.run(session())
