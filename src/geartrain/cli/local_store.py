"""What the verbs for a store's file have in common: how it is named, and how they fail."""

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer

from geartrain.errors import GeartrainError
from geartrain.server.config import load
from geartrain.server.config.settings import TABLE, Settings

Store = Annotated[
    str | None,
    typer.Option(
        TABLE["store"].flag,
        metavar="STORE",
        help="The store, such as `sqlite:///var/lib/geartrain/jobs.db`. [default: what `geartrain serve` uses]",
        show_default=False,
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        load.CONFIG_FLAG,
        metavar="FILE",
        help="Read the server's settings from this TOML file.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Report as one JSON object, for machines.")]


def settings(store: str | None, config: str | None) -> Settings:
    """What `geartrain serve` would use with these flags."""
    return load.load({"store": store, "config": config})


@contextlib.contextmanager
def plain_errors(file: str) -> Iterator[None]:
    """What the system refuses to do with a file is one line on stderr, as our own errors are."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise GeartrainError(f"{file}: {error.strerror or error}") from None
