"""A group of commands: `geartrain token create`, `geartrain token list`."""

from collections.abc import Callable, Mapping

import typer

Commands = Mapping[str, tuple[Callable[..., object], str]]


def add(app: typer.Typer, name: str, help: str, commands: Commands) -> typer.Typer:
    """Add a group with these commands and their epilogs, by name."""
    group = typer.Typer(name=name, help=help, no_args_is_help=True, rich_markup_mode="markdown")
    group.callback()(lambda: None)  # without it, typer makes a group of one command that command
    for command, (function, epilog) in commands.items():
        group.command(command, epilog=epilog)(function)
    app.add_typer(group)
    return group
