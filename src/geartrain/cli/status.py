"""`geartrain status`: the server's queues, by function."""

import time
from typing import Annotated, Any, Final

from geartrain.cli import exit_codes, formatting, progress, remote, tables
from geartrain.cli.parameters import argument, option

EPILOG = f"""
**Columns.** QUEUED jobs are ready for a worker. SCHEDULED ones are not due yet. DEAD ones failed for good; see
`geartrain retry` and `geartrain delete`. OLDEST is the age of the oldest queued job. DONE and FAILED count since
the start of the server. The last column says what keeps all queued jobs of a function waiting: `paused`, or the
name of a limit.

**Clusters.** Of servers that share a store, all are shown together; `--local` shows the one that is asked.

It also works with a C gearmand, which reports less.

{exit_codes.EPILOG}
**Examples**

- `geartrain status` and `geartrain status resize`

- `geartrain status --sort queued --limit 10` shows the ten longest queues

- `watch geartrain status`, or better `geartrain top`
"""

HEAD: Final = (
    "FUNCTION", "QUEUED", "RUNNING", "SCHEDULED", "DEAD", "WORKERS", "OLDEST", "SUBMITTED", "DONE", "FAILED", "",
)  # fmt: skip
_NUMBERS: Final = frozenset(HEAD[1:-1])


def status(
    function: Annotated[str, argument(metavar="[TEXT]", help="Only functions whose name contains this text.")] = "",
    sort: Annotated[str, option(metavar="WORD", help="Sort by name, queued, oldest, running or failed.")] = "name",
    limit: Annotated[int, option(metavar="N", min=1, help="Show at most N functions.")] = 100,
    server: remote.Server = remote.DEFAULT_URL,
    local: remote.Local = False,
    json: remote.Json = False,
) -> None:
    """Show queues, workers and counts of jobs, by function."""
    overview, page = remote.with_client(server, lambda client: _ask(client, function, sort, limit, local))
    if json:
        tables.print_lines([tables.json_line({"overview": overview, "functions": page["items"]})])
        return
    tables.print_lines([_summary(overview), ""] if overview else [])
    tables.print_lines(table(page["items"]))


def table(functions: list[dict[str, Any]]) -> list[str]:
    """A line for each function."""
    return tables.table(HEAD, map(row, functions), _NUMBERS) if functions else ["no functions yet"]


async def _ask(client: Any, search: str, sort: str, limit: int, local: bool) -> tuple[Any, Any]:
    from geartrain.client import gearmand

    server = str((await client.connection()).address)
    if await gearmand.is_gearmand(server):
        return None, await gearmand.functions(server, search)
    only = remote.only(local)
    overview = await remote.inquire(client, "overview", **only)
    return overview, await remote.inquire(client, "functions", search=search, sort=sort, limit=limit, **only)


def _summary(overview: dict[str, Any]) -> str:
    return (
        f"up {formatting.duration(overview['uptime'])}, {progress.count_of(overview['connections'], 'connection')},"
        f" {progress.count_of(overview['workers'], 'worker')};"
        f" {overview['submitted_rate']:,.1f} submitted/s, {overview['completed_rate']:,.1f} completed/s;"
        f" {overview['queued']:,} queued, {overview['running']:,} running, {overview['scheduled']:,} scheduled,"
        f" {overview['dead']:,} dead, {formatting.size(overview.get('queued_bytes', 0))}"
    )


def _limit(waits_for: str) -> str:
    """The limit that a function has reached, which is in brackets at the end; empty: none."""
    return waits_for[waits_for.rindex("(") + 1 : -1] if waits_for.endswith(")") else ""


def row(function: dict[str, Any]) -> tuple[str, ...]:
    """The cells of a function."""
    oldest = function["oldest"]
    return (
        formatting.value(function["name"]),
        *(f"{function[name]:,}" for name in ("queued", "running", "scheduled", "dead", "workers")),
        formatting.duration(max(time.time() - oldest, 0.0)) if oldest else "-",
        *(f"{function[name]:,}" for name in ("submitted", "completed", "failed")),
        "paused" if function["paused"] else _limit(function.get("waits_for", "")),
    )
