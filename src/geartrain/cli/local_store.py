"""The options `--store` and `--config` of the verbs that work on a store's file, and `--server` of those that also
work on a running server.
"""

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Final, TypeVar

import typer

from geartrain.cli import remote, settings_options
from geartrain.errors import GeartrainError
from geartrain.server.config import load
from geartrain.server.config.settings import Settings

T = TypeVar("T")

_ANSWER_SECONDS: Final = 60.0  # a page of records may take a walk over all of them

Store = Annotated[
    str | None,
    settings_options.file_option(
        "store",
        "STORE",
        "The store, such as `sqlite:///var/lib/geartrain/jobs.db`. [default: the store of `geartrain serve`]",
    ),
]
Config = Annotated[str | None, settings_options.config_option("the store")]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        "-s",
        metavar="URL",
        help="Instead of a store, use the server at this URL, whatever its store.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def settings(store: str | None, config: str | None) -> Settings:
    """The settings that `geartrain serve` would use with these flags."""
    return load.load({"store": store, "config": config})


def require_one(server: str | None, store: str | None, config: str | None) -> None:
    """Refuse `--server` together with the options of a store."""
    if server and (store or config):
        raise typer.BadParameter("name a server or a store, not both", param_hint="--server")


def ask_server(server: str, use: Callable[[Callable[..., Awaitable[Any]]], Awaitable[T]]) -> T:
    """Run a coroutine function with a function that sends control verbs to a server, and return its result."""

    async def with_ask(client: Any) -> T:
        from geartrain.client import control

        return await use(functools.partial(control.ask, client, answer_within=_ANSWER_SECONDS))

    return remote.with_client(server, with_ask)


@contextlib.contextmanager
def plain_errors(file: str) -> Iterator[None]:
    """Turn OSErrors into errors of ours, which are printed as one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise GeartrainError(f"{file}: {error.strerror or error}") from None
