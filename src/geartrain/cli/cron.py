"""`geartrain cron`: schedules that the server keeps: it submits their jobs by itself, no other process is needed."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables
from geartrain.cli.submit import Urgency

group = typer.Typer(
    name="cron",
    help="Schedules that the server keeps: it submits their jobs by itself.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_ADD_EPILOG = f"""
**The expression** has five fields: minute, hour, day of the month, month, day of the week; `@hourly` and its kin are
understood as well. Times that pass while the server is down are made up for by one run.

{exit_codes.EPILOG}
**Examples**

- `geartrain cron add nightly '0 3 * * *' report`

- `geartrain cron add pulse '*/5 * * * *' check '{{"host": "a"}}' --timezone Europe/Berlin --unique`
"""

_HEAD: Final = ("NAME", "EXPRESSION", "ZONE", "FUNCTION", "NEXT", "LAST", "")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the schedule is called.", show_default=False)]


@group.command("list", epilog=exit_codes.EPILOG)
def list_crons(server: remote.Server = remote.USUAL, json: remote.Json = False) -> None:
    """Show all schedules, and when they run next."""
    crons = remote.ask(server, "crons")
    if json:
        tables.say(map(tables.json_line, crons))
    else:
        tables.say(tables.table(_HEAD, map(_row, crons)) if crons else ["no schedules"])


@group.command("add", epilog=_ADD_EPILOG)
def make(
    name: Name,
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help="When.", show_default=False)],
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="What.", show_default=False)],
    payload: Annotated[str, typer.Argument(metavar="[PAYLOAD]", help="With what.")] = "",
    priority: Annotated[Urgency, typer.Option(help="How urgent its jobs are.")] = Urgency.NORMAL,
    unique: Annotated[
        bool, typer.Option("--unique", help="Leave a run out while the one before it is not over.")
    ] = False,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Such as `Europe/Berlin`.")] = "UTC",
    server: remote.Server = remote.USUAL,
    json: remote.Json = False,
) -> None:
    """Make a schedule, or change the one of that name."""
    cron = remote.ask(
        server, "cron_set", name=name, expression=expression, function=function, payload=payload,
        priority=priority.value, unique=unique, timezone=timezone,
    )  # fmt: skip
    tables.say([tables.json_line(cron) if json else f"{name} runs next at {formatting.clock(cron['next_at'])}"])


# What can be done with a schedule of that name: the verb, the server's word for it, what is said then, and its help.
_DEEDS: Final = (
    ("remove", "cron_remove", "{name} removed", "Remove a schedule; jobs that it has submitted stay."),
    ("run", "cron_run", "{answer}", "Submit a schedule's job now, besides its times, and print its handle."),
    ("pause", "cron_pause", "{name} paused", "Let a schedule rest."),
    ("resume", "cron_resume", "{name} resumed", "Let a paused schedule run again."),
)


def _deed(verb: str, report: str, about: str) -> Callable[..., None]:
    def act(name: Name, server: remote.Server = remote.USUAL, json: remote.Json = False) -> None:
        answer = remote.ask(server, verb, name=name)
        said = report.format(name=name, answer=formatting.value(answer, 100) if isinstance(answer, str) else "")
        tables.say([tables.json_line(answer) if json else said])

    act.__doc__ = about
    return act


for _name, _verb, _report, _about in _DEEDS:
    group.command(_name, epilog=exit_codes.EPILOG)(_deed(_verb, _report, _about))


def _row(cron: dict[str, Any]) -> tuple[str, ...]:
    return (
        cron["name"], cron["expression"], cron["timezone"], formatting.value(cron["function"]),
        formatting.clock(cron["next_at"]), formatting.clock(cron["last_at"]), "paused" if cron["paused"] else "",
    )  # fmt: skip


def add(app: typer.Typer) -> None:
    """Add the verb with its verbs."""
    app.add_typer(group)
