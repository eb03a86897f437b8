"""Options of commands that use a file which `geartrain serve` has a setting for."""

from typing import Any

import typer

from geartrain.server.config import load
from geartrain.server.config.settings import TABLE


def file_option(setting: str, metavar: str, help: str) -> Any:
    """The option that names the file, with the flag of the setting."""
    return typer.Option(TABLE[setting].flag, metavar=metavar, help=help, show_default=False)


def config_option(thing: str) -> Any:
    """The option that names a settings file, which names the file."""
    return typer.Option(
        load.CONFIG_FLAG,
        metavar="FILE",
        help=f"Take {thing} from the settings in this TOML file.",
        show_default=False,
    )
