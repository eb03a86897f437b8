"""`geartrain cron`: schedules in the server, which submits their jobs itself.

All commands but `list` are made from the table of verbs.
"""

from typing import Any, Final

import typer

from geartrain.cli import exit_codes, formatting, job_verbs, remote, tables

_HEAD: Final = ("NAME", "EXPRESSION", "ZONE", "FUNCTION", "NEXT", "LAST", "")


def add(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        name="cron",
        help="Manage schedules: the server submits their jobs itself.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
    )
    group.command("list", epilog=exit_codes.EPILOG)(list_schedules)
    job_verbs.add(group, group="cron")
    app.add_typer(group)


def list_schedules(server: remote.Server = remote.DEFAULT_URL, json: remote.Json = False) -> None:
    """List schedules and their next runs."""
    schedules = remote.ask(server, "crons")
    if json:
        tables.print_lines(map(tables.json_line, schedules))
    else:
        tables.print_lines(tables.table(_HEAD, map(_row, schedules)) if schedules else ["no schedules"])


def _row(schedule: dict[str, Any]) -> tuple[str, ...]:
    return (
        schedule["name"],
        schedule["expression"],
        schedule["timezone"],
        formatting.value(schedule["function"]),
        formatting.local_time(schedule["next_at"]),
        formatting.local_time(schedule["last_at"]),
        "paused" if schedule["paused"] else "",
    )
