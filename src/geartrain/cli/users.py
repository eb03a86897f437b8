"""`geartrain users`: the users of a running server, and what they have of their quotas."""

from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables

EPILOG = f"""
It needs the right `admin` for all functions. A number after a slash is the user's limit. Jobs count that wait, that run
and that are dead. `geartrain token list` shows users and tokens as they are in the users file.

{exit_codes.EPILOG}
**Examples**

- `geartrain users`

- `geartrain users --json | jq -r 'select(.queued_jobs > 1000) | .name'`
"""

_HEAD: Final = ("USER", "CONNECTIONS", "JOBS", "BYTES", "MAY")


def users(
    server: remote.Server = remote.DEFAULT_URL,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """List users with their rights, and what they have of their quotas."""
    items = remote.ask(server, "users")
    if json:
        tables.print_lines(map(tables.json_line, items))
    else:
        tables.print_lines(tables.table(_HEAD, map(_row, items)) if items else ["no users"])


def _row(user: dict[str, Any]) -> tuple[str, ...]:
    limit = user["max_queued_bytes"]
    size = formatting.size(user["queued_bytes"])
    return (
        user["name"],
        _of(user["connections"], user["max_connections"]),
        _of(user["queued_jobs"], user["max_queued_jobs"]),
        f"{size} / {formatting.size(limit)}" if limit else size,
        " ".join(user["may"]) or "-",
    )


def _of(count: int, limit: int) -> str:
    return f"{count:,} / {limit:,}" if limit else f"{count:,}"
