"""The `geartrain` command with its verbs.

Only the module of the verb that was typed is imported, so that `geartrain submit` does not load the server's code. Help
and completion import all. A command line that `command_line` can parse does not come here.
"""

import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from geartrain.cli import exit_codes, parameters_for_typer
from geartrain.cli.verb_modules import VERBS


def _print_version(wanted: bool) -> None:
    if wanted:
        from geartrain.cli import version

        version.version()
        raise typer.Exit


def build(typed: str = "") -> typer.Typer:
    """The command with the verb that was typed, or with all verbs if there is none of that name."""
    app = typer.Typer(
        name="geartrain",
        no_args_is_help=True,
        epilog=exit_codes.EPILOG,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    modules = {typed: VERBS[typed]} if typed in VERBS else {module: module for module in VERBS.values()}
    for module in modules.values():
        _add(app, importlib.import_module(f"geartrain.cli.{module}"), module)
    app.callback()(options)
    parameters_for_typer.add(app)
    # With a second verb, typer does not turn a single one into the whole command.
    app.command("gearmand", add_help_option=False)(gearmand)
    return app


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A durable job server that speaks several protocols, and the commands to use and operate it."""


def _add(app: typer.Typer, module: Any, name: str) -> None:
    add: Callable[[typer.Typer], None] | None = getattr(module, "add", None)
    if add is not None:
        add(app)
    else:
        app.command(name, epilog=getattr(module, "EPILOG", None))(getattr(module, name))


def gearmand() -> None:
    """Run the server with gearmand's options: see `geartrain gearmand --help`."""
    raise AssertionError("main() passes this verb to cli/gearmand.py before typer sees it")


def run() -> int:
    """Run the verb on the command line. Wrong usage exits with code 2; errors of ours go to the caller."""
    build(sys.argv[1] if len(sys.argv) > 1 else "")()
    return 0
