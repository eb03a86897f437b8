"""`geartrain cron`: schedules in the server, which submits their jobs itself.

All commands but `list` are made from the table of verbs.
"""

from typing import Any, Final

import typer

from geartrain.cli import command_group, exit_codes, formatting, job_verbs, remote, tables

_HEAD: Final = ("NAME", "EXPRESSION", "ZONE", "FUNCTION", "NEXT", "LAST", "")


def add(app: typer.Typer) -> None:
    """Add the group of commands."""
    commands: command_group.Commands = {"list": (list_schedules, exit_codes.EPILOG)}
    group = command_group.add(app, "cron", "Manage schedules: the server submits their jobs itself.", commands)
    job_verbs.add(group, group="cron")


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
