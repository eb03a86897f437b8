"""The `--server` option, and requests to the server that it names."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

from geartrain.address import DEFAULT_PORTS
from geartrain.cli.parameters import option

T = TypeVar("T")

DEFAULT_URL: Final = f"gearman://127.0.0.1:{DEFAULT_PORTS['gearman']}"
URL_VARIABLE: Final = "GEARTRAIN_SERVER"
# Seconds to try to connect: a person is waiting at the terminal.
PATIENCE: Final = 2.0

_OPTION: Final[Any] = option(
    "--server",
    "-s",
    metavar="URL",
    envvar=URL_VARIABLE,
    help="The server's URL: gearman, danga, periodic, memodb+tcp, gearmonkey or http; gearmans, https ... with TLS.",
)
Server = Annotated[str, _OPTION]
OptionalServer = Annotated[str | None, _OPTION]
Json = Annotated[bool, option("--json", help="Print JSON.")]


Local = Annotated[bool, option("--local", help="Only this server, where it is one of a cluster.")]

_named: set[str] = set()  # servers of which was said already that they have not answered


def only(local: bool) -> dict[str, bool]:
    """The argument of verbs that are asked of one server; without it, older servers understand them as well."""
    return {"local": True} if local else {}


def ask(server: str, verb: str, /, **arguments: Any) -> Any:
    """The server's answer to one control verb."""
    return with_client(server, lambda client: inquire(client, verb, **arguments))


async def inquire(client: Any, verb: str, /, **arguments: Any) -> Any:
    """The same with a client. Servers of a cluster whose part is missing are named on standard error, once."""
    from geartrain.client import control

    answer, unanswered = await control.ask_cluster(client, verb, **arguments)
    missing = [name for name in unanswered if name not in _named]
    if missing:
        _named.update(missing)
        print(f"geartrain: no answer from {', '.join(missing)}: what it has is missing here", file=sys.stderr)
    return answer


def with_client(server: str, use: Callable[[Any], Awaitable[T]]) -> T:
    """Run a coroutine function with a client that is connected to the server, and return its result."""

    async def session() -> T:
        from geartrain.client.async_client import AsyncClient

        async with AsyncClient(*server.split(","), patience=PATIENCE) as client:
            return await use(client)

    return asyncio.run(session())
