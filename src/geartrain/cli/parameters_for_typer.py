"""Makes typer's parameters of the declared ones, for help, completion and every command line that typer parses."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

import typer

from geartrain.cli import connection_options, parameters
from geartrain.cli.parameters import VerbArgument, VerbOption


def add(group: typer.Typer) -> None:
    """Do that for the group, its commands and the groups in it; what connects to a server gets the options for that."""
    own: list[Any] = [group.registered_callback] if group.registered_callback is not None else []
    for command in (*own, *group.registered_commands):
        if command.callback is not None:
            command.callback = converted(connection_options.extended(command.callback))
    for below in group.registered_groups:
        assert below.typer_instance is not None
        add(below.typer_instance)


def converted(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A verb's function as typer wants it."""

    @functools.wraps(callback)
    def execute(**values: Any) -> Any:
        try:
            return callback(**values)
        except parameters.UsageError as error:
            raise typer.BadParameter(error.message, param_hint=error.param_hint) from None

    declared = [
        parameter.replace(annotation=_annotation(parameter.annotation), kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(callback).parameters.values()
    ]
    execute.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    execute.__annotations__ = {parameter.name: parameter.annotation for parameter in declared}
    return execute


def _annotation(annotation: Any) -> Any:
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *about = get_args(annotation)
    return Annotated[(kind, *map(_typers, about))]


def _typers(about: Any) -> Any:
    if isinstance(about, VerbOption):
        return typer.Option(
            *about.names,
            metavar=about.metavar,
            help=about.help,
            envvar=about.envvar,
            min=about.min,
            max=about.max,
            show_default=about.show_default,
            rich_help_panel=about.panel,
        )
    if isinstance(about, VerbArgument):
        return typer.Argument(metavar=about.metavar, help=about.help, show_default=about.show_default)
    return about
