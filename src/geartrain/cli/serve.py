"""`geartrain serve`: the server in the foreground. Its flags are made from the table of settings."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from geartrain.server.config import load
from geartrain.server.config.settings import TABLE, Setting
from geartrain.server.process import launch

EPILOG = f"""
**Where settings come from.** Flags first, then the environment, then a settings file, then the defaults above.
Every flag has a name in each: `--max-packet 1MiB` is `GEARTRAIN_MAX_PACKET=1MiB` in the environment and
`max_packet = "1MiB"` in the file. The file is the one that `{load.CONFIG_FLAG}` or `{load.CONFIG_VARIABLE}`
names, else `~/.config/geartrain/{load.FILE_NAME}`, else `/etc/geartrain/{load.FILE_NAME}`.

**Signals.** TERM and INT stop at once; USR1 stops when the running jobs are done; HUP reopens the log file.

**Examples**

- `geartrain serve` opens the usual ports on this machine only

- `geartrain serve --listen gearman://0.0.0.0:4730` lets other machines in

- `geartrain serve --listen gearman://127.0.0.1:0` takes a free port and says which one on stdout

- `geartrain serve --log-level debug --log-format json` shows every connection, for a machine to read

- `geartrain gearmand --help` is for those who come from gearmand
"""


def command() -> Callable[..., None]:
    """The verb as a function with one parameter per setting, which is what typer makes flags from."""

    def serve(**flags: Any) -> None:
        launch.serve(load.load(flags))

    serve.__doc__ = "Run the server until it is told to stop."
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
    """Everything is optional, and None when it is not given: other sources may have it."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
