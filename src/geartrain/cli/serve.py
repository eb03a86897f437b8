"""`geartrain serve`: run the server. Its flags are made from the table of settings."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from geartrain.server.config import load
from geartrain.server.config.settings import TABLE, Setting
from geartrain.server.process import launch

EPILOG = f"""
**Settings** come from flags, the environment, a settings file and the defaults, in this order of precedence. The
setting `--max-packet 1MiB` is `GEARTRAIN_MAX_PACKET=1MiB` in the environment and `max_packet = "1MiB"` in the file. The
file is `{load.CONFIG_FLAG}` or `{load.CONFIG_VARIABLE}`, else `~/.config/geartrain/{load.FILE_NAME}`, else
`/etc/geartrain/{load.FILE_NAME}`.

**Signals.** TERM and INT stop the server at once. USR1 stops it when the running jobs are done. HUP reopens the log
file and reads users and TLS certificates again, as `geartrain reload` does.

**Examples**

- `geartrain serve` listens on the default ports, on this machine only

- `geartrain serve --listen gearman://0.0.0.0:4730` accepts connections from other machines

- `geartrain serve --listen gearman://127.0.0.1:0` takes a free port and prints it

- `geartrain serve --log-level debug --log-format json` logs every connection as JSON

- `geartrain gearmand --help` describes the same server with gearmand's options
"""


def command() -> Callable[..., None]:
    """The verb as a function with a parameter for each setting, from which typer makes flags."""

    def serve(**flags: Any) -> None:
        launch.serve(load.load(flags))

    serve.__doc__ = "Run the server in the foreground."
    serve.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_config(), *map(_parameter, TABLE.values())]
    )
    return serve


def add(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("serve", epilog=EPILOG)(command())


def _config() -> inspect.Parameter:
    option = typer.Option(
        load.CONFIG_FLAG, metavar="FILE", help="Read settings from this TOML file.", show_default=False
    )
    return _keyword("config", Annotated[str | None, option])


def _parameter(setting: Setting) -> inspect.Parameter:
    value_type = setting.value_type
    option = typer.Option(
        f"{setting.flag}/--no-{setting.flag[2:]}" if value_type.flag else setting.flag,
        metavar=value_type.metavar,
        help=f"{setting.help} [{_choices(setting)}default: {setting.shown_default}]",
        show_default=False,
        rich_help_panel=setting.group,
    )
    type: Any = bool if value_type.flag else list[str] if value_type.many else str
    return _keyword(setting.name, Annotated[type | None, option])


def _choices(setting: Setting) -> str:
    choices = setting.value_type.choices
    return f"{', '.join(choices)}; " if choices else ""


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    """A parameter that is None if the flag is not given: other sources may have the setting."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
