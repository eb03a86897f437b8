"""Options and arguments of verbs, declared as data: `Annotated[str, option(help="...")]`.

`command_line` parses the usual command lines of scripts by them. `parameters_for_typer` makes typer's of them, for all
other command lines, help and completion. Importing typer takes longer than a whole `geartrain submit`, so verbs that
scripts call declare their parameters with this module; the others may use typer's own.
"""

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Final, NamedTuple

REQUIRED: Final = inspect.Parameter.empty  # the default of a parameter that has to be given


class UsageError(Exception):
    """The command line cannot be meant. A verb raises it before it does anything.

    `param_hint` names the option or argument, in the message that is printed.
    """

    def __init__(self, message: str, *, param_hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param_hint = param_hint


class VerbOption(NamedTuple):
    """A named option. Without `names` it is called like its parameter; a flag needs a name."""

    names: tuple[str, ...]
    help: str
    metavar: str | None
    envvar: str | None  # a variable that has the value where the option is not given
    min: float | None
    max: float | None
    show_default: bool
    panel: str | None  # the heading in the help that it is listed under

    def names_of(self, parameter: str) -> tuple[str, ...]:
        """The names on the command line, for the parameter that it belongs to."""
        return self.names or (f"--{parameter.replace('_', '-')}",)


class VerbArgument(NamedTuple):
    """A value without a name, by its place."""

    help: str
    metavar: str | None
    show_default: bool


class VerbParameter(NamedTuple):
    """A parameter of a verb's function."""

    name: str
    type: Any  # `list[str]`, `int` ..., without `None`
    about: Any  # a VerbOption or VerbArgument; of typer, or None, where the verb is parsed by typer alone
    default: Any


def option(
    *names: str,
    help: str,
    metavar: str | None = None,
    envvar: str | None = None,
    min: float | None = None,
    max: float | None = None,
    show_default: bool = True,
    panel: str | None = None,
) -> Any:
    """Declare an option, for `Annotated`."""
    return VerbOption(names, help, metavar, envvar, min, max, show_default, panel)


def argument(*, help: str, metavar: str | None = None, show_default: bool = True) -> Any:
    """Declare an argument, for `Annotated`."""
    return VerbArgument(help, metavar, show_default)


def of(function: Callable[..., Any]) -> list[VerbParameter]:
    """The parameters of a verb's function.

    >>> from typing import Annotated
    >>> def greet(name: Annotated[str | None, argument(help="Whom.")] = None) -> None: ...
    >>> [(parameter.name, parameter.type, parameter.default) for parameter in of(greet)]
    [('name', <class 'str'>, None)]
    """
    return [_parameter(parameter) for parameter in inspect.signature(function).parameters.values()]


def _parameter(parameter: inspect.Parameter) -> VerbParameter:
    annotation, about = parameter.annotation, None
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, about, *_ = typing.get_args(annotation)
    if isinstance(annotation, types.UnionType):
        kinds = [kind for kind in annotation.__args__ if kind is not types.NoneType]
        annotation = kinds[0] if len(kinds) == 1 else annotation
    return VerbParameter(parameter.name, annotation, about, parameter.default)
