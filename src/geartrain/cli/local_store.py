"""The options `--store` and `--config` of the verbs that work on a store's file."""

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
        help="The store, such as `sqlite:///var/lib/geartrain/jobs.db`. [default: the store of `geartrain serve`]",
        show_default=False,
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        load.CONFIG_FLAG,
        metavar="FILE",
        help="Take the store from the settings in this TOML file.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def settings(store: str | None, config: str | None) -> Settings:
    """The settings that `geartrain serve` would use with these flags."""
    return load.load({"store": store, "config": config})


@contextlib.contextmanager
def plain_errors(file: str) -> Iterator[None]:
    """Turn OSErrors into errors of ours, which are printed as one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise GeartrainError(f"{file}: {error.strerror or error}") from None
