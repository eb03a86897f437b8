"""`geartrain status`: the whole server at a glance, function by function."""

import time
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables

EPILOG = f"""
**Columns.** WAITING jobs are ready for a worker, LATER ones have a time to come, DEAD ones were given up and wait
for `geartrain retry` or `delete`. OLDEST is how long the first of the waiting has been ready. DONE and FAILED count
since the server's start.

A C gearmand is asked in its own words, and knows less.

{exit_codes.EPILOG}
**Examples**

- `geartrain status` and `geartrain status resize`

- `geartrain status --sort queued --limit 10` shows the ten longest queues

- `watch geartrain status`, or better `geartrain top`
"""

HEAD: Final = (
    "FUNCTION", "WAITING", "RUNNING", "LATER", "DEAD", "WORKERS", "OLDEST", "SUBMITTED", "DONE", "FAILED", "",
)  # fmt: skip
_NUMBERS: Final = frozenset(HEAD[1:-1])


def status(
    function: Annotated[str, typer.Argument(metavar="[TEXT]", help="Only functions with this in their name.")] = "",
    sort: Annotated[str, typer.Option(metavar="WORD", help="By name, queued, oldest, running or failed.")] = "name",
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many functions.")] = 100,
    server: remote.Server = remote.USUAL,
    json: remote.Json = False,
) -> None:
    """Show queues, workers and what became of jobs."""
    overview, page = remote.with_client(server, lambda client: _ask(client, function, sort, limit))
    if json:
        tables.say([tables.json_line({"overview": overview, "functions": page["items"]})])
        return
    tables.say([_summary(overview), ""] if overview else [])
    tables.say(table(page["items"]))


def table(functions: list[dict[str, Any]]) -> list[str]:
    """One line for each function."""
    return tables.table(HEAD, map(row, functions), _NUMBERS) if functions else ["no functions yet"]


async def _ask(client: Any, search: str, sort: str, limit: int) -> tuple[Any, Any]:
    from geartrain.client import control, gearmand

    server = str((await client.connection()).address)
    if await gearmand.is_gearmand(server):
        return None, await gearmand.functions(server, search)
    overview = await control.ask(client, "overview")
    return overview, await control.ask(client, "functions", search=search, sort=sort, limit=limit)


def _summary(overview: dict[str, Any]) -> str:
    return (
        f"up {formatting.span(overview['uptime'])}, {overview['connections']:,} connections,"
        f" {overview['workers']:,} workers;"
        f" in {overview['submitted_rate']:,.1f}/s, done {overview['completed_rate']:,.1f}/s;"
        f" {overview['queued']:,} waiting, {overview['running']:,} running, {overview['scheduled']:,} later,"
        f" {overview['dead']:,} dead"
    )


def row(function: dict[str, Any]) -> tuple[str, ...]:
    """Its cells, as people read them."""
    oldest = function["oldest"]
    return (
        formatting.value(function["name"]),
        *(f"{function[name]:,}" for name in ("queued", "running", "scheduled", "dead", "workers")),
        formatting.span(max(time.time() - oldest, 0.0)) if oldest else "-",
        *(f"{function[name]:,}" for name in ("submitted", "completed", "failed")),
        "paused" if function["paused"] else "",
    )
