"""The commands that are operators' verbs: cancel, retry, delete, pause, resume, and those of `geartrain cron`.

Their names, arguments, help and reports are in the table of verbs, `admin/verbs`; commands are made from it.
"""

import enum
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from geartrain.admin import verbs
from geartrain.admin.verbs import Argument, CliCommand, Verb
from geartrain.cli import bulk, exit_codes, formatting, remote, tables
from geartrain.errors import AdminError


def add(app: typer.Typer, table: Iterable[Verb] = tuple(verbs.VERBS.values()), group: str = "") -> None:
    """Add the commands of a group of verbs."""
    for verb in table:
        if verb.command is not None and verb.command.group == group:
            app.command(verb.command.name, epilog=epilog(verb))(command(verb, verb.command))


def epilog(verb: Verb) -> str:
    """What is below the options in the command's help: the exit codes come before the examples."""
    assert verb.command is not None
    text, examples, rest = verb.command.epilog.partition("**Examples**")
    text += f"\n\n{bulk.EPILOG}" if bulk.is_action(verb) else ""
    return f"{text}\n\n{exit_codes.EPILOG}\n{examples}{rest}" if text else exit_codes.EPILOG


def command(verb: Verb, command: CliCommand) -> Callable[..., None]:
    """The function that typer calls, with a parameter for each argument of the verb."""
    run = _run_for_each if command.many else _run_once
    options = bulk.OPTIONS if bulk.is_action(verb) else {}

    def execute(**values: Any) -> None:
        server, as_json = values.pop("server"), values.pop("json")
        chosen = {name: values.pop(name) for name in options}
        if options and bulk.check(values["handles"], chosen):
            bulk.run(verb, server, as_json, chosen)
        else:
            run(verb, command, server, as_json, values)

    parameters = [
        *(_parameter(argument, command.many, optional=bool(options)) for argument in verb.arguments),
        *(_keyword(name, annotation, default) for name, (annotation, default) in options.items()),
        _keyword("server", remote.Server, remote.DEFAULT_URL),
        _keyword("json", remote.Json, False),
    ]
    execute.__doc__ = f"{verb.help}."
    execute.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    execute.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return execute


def _run_for_each(verb: Verb, command: CliCommand, server: str, as_json: bool, values: dict[str, Any]) -> None:
    """Repeat the verb for each name. Errors are printed, and the command goes on with the next one."""
    code = 0
    (names,) = values.values()
    for name in names:
        try:
            _run_once(verb, command, server, as_json, {verb.arguments[0].name: name})
        except AdminError as error:
            code = exit_codes.code_for(error)
            print(f"geartrain: {error}", file=sys.stderr)
    if code:
        raise typer.Exit(code)


def _run_once(verb: Verb, command: CliCommand, server: str, as_json: bool, values: dict[str, Any]) -> None:
    arguments = {
        name: value.value if isinstance(value, enum.Enum) else value
        for name, value in values.items()
        if value is not None
    }
    answer = remote.ask(server, verb.name, **arguments)
    tables.print_lines([tables.json_line(answer) if as_json else _report(verb, command, arguments, answer)])


def _report(verb: Verb, command: CliCommand, arguments: dict[str, Any], answer: Any) -> str:
    if not command.report:
        return f"{arguments[verb.arguments[0].name]} {verb.past}"
    fields = {**arguments, "answer": formatting.value(answer, 100) if isinstance(answer, str) else ""}
    if isinstance(answer, dict):
        fields |= {name: value for name, value in answer.items() if isinstance(value, int)}
        fields |= {name: formatting.local_time(value) for name, value in answer.items() if name.endswith("_at")}
    return command.report.format(**fields)


def _parameter(argument: Argument, many: bool, *, optional: bool) -> inspect.Parameter:
    type: Any = _type(argument)
    metavar = argument.metavar or argument.name.upper()
    if many:
        help = f"{argument.help}; several may be given."
        about = typer.Argument(metavar=f"{metavar}...", help=help, show_default=False)
        return _keyword(f"{argument.name}s", Annotated[list[type], about], [] if optional else inspect.Parameter.empty)
    help = f"{argument.help}."
    if argument.required:
        about = typer.Argument(metavar=metavar, help=help, show_default=False)
        return _keyword(argument.name, Annotated[type, about], inspect.Parameter.empty)
    default = None if argument.default is None else type(argument.default)
    if argument.default is None:
        type = type | None
    if argument.positional:
        return _keyword(argument.name, Annotated[type, typer.Argument(metavar=f"[{metavar}]", help=help)], default)
    option = typer.Option(f"--{argument.name.replace('_', '-')}", metavar=argument.metavar or None, help=help)
    return _keyword(argument.name, Annotated[type, option], default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _type(argument: Argument) -> Any:
    if argument.choices:
        return enum.StrEnum(argument.name.title(), {choice.upper(): choice for choice in argument.choices})
    return {verbs.INTEGER: int, verbs.NUMBER: float, verbs.BOOLEAN: bool}.get(argument.type, str)
