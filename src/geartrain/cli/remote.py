"""The `--server` option, and requests to the server that it names."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

import typer

from geartrain.address import DEFAULT_PORTS

T = TypeVar("T")

DEFAULT_URL: Final = f"gearman://127.0.0.1:{DEFAULT_PORTS['gearman']}"
URL_VARIABLE: Final = "GEARTRAIN_SERVER"
# Seconds to try to connect: a person is waiting at the terminal.
PATIENCE: Final = 2.0

_OPTION: Final[Any] = typer.Option(
    "--server",
    "-s",
    metavar="URL",
    envvar=URL_VARIABLE,
    help="The server's URL: gearman, danga, periodic, memodb+tcp, gearmonkey or http; gearmans, https ... with TLS.",
)
Server = Annotated[str, _OPTION]
OptionalServer = Annotated[str | None, _OPTION]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def ask(server: str, verb: str, /, **arguments: Any) -> Any:
    """The server's answer to one control verb."""

    async def ask_verb(client: Any) -> Any:
        from geartrain.client import control

        return await control.ask(client, verb, **arguments)

    return with_client(server, ask_verb)


def with_client(server: str, use: Callable[[Any], Awaitable[T]]) -> T:
    """Run a coroutine function with a client that is connected to the server, and return its result."""

    async def session() -> T:
        from geartrain.client.async_client import AsyncClient

        async with AsyncClient(*server.split(","), patience=PATIENCE) as client:
            return await use(client)

    return asyncio.run(session())
