"""`geartrain workers`: the connected workers."""

import time
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables

EPILOG = f"""
**Clusters.** The workers of all servers that share a store are listed, with the server that each is connected to.

It also works with a C gearmand, which reports less.

{exit_codes.EPILOG}
**Examples**

- `geartrain workers`

- `geartrain workers resize` lists workers with `resize` in their name or functions

- `geartrain workers --json | jq -r 'select(.idle) | .name'`
"""

_HEAD: Final = ("ID", "NAME", "PROTOCOL", "PEER", "CONNECTED", "FUNCTIONS", "RUNNING", "FOR")


def workers(
    search: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="Only workers with this text in their name or functions.")
    ] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most N workers.")] = 100,
    server: remote.Server = remote.DEFAULT_URL,
    local: remote.Local = False,
    json: remote.Json = False,
) -> None:
    """List the connected workers, their functions and the jobs they run."""
    items = remote.with_client(server, lambda client: _ask(client, search, limit, local))["items"]
    if json:
        tables.print_lines(map(tables.json_line, items))
    else:
        tables.print_lines(_table(items) if items else ["no workers"])


def _table(items: list[dict[str, Any]]) -> list[str]:
    head, rows = tables.with_server(_HEAD, map(_row, items), items)
    return tables.table(head, rows, frozenset({"ID"}))


async def _ask(client: Any, search: str, limit: int, local: bool) -> Any:
    from geartrain.client import gearmand

    server = str((await client.connection()).address)
    if await gearmand.is_gearmand(server):
        return await gearmand.workers(server, search)
    return await remote.inquire(client, "workers", search=search, limit=limit, **remote.only(local))


def _row(worker: dict[str, Any]) -> tuple[str, ...]:
    functions = ", ".join(formatting.value(name) for name in worker["functions"])
    if worker["function_count"] > len(worker["functions"]):
        functions += f", and {worker['function_count'] - len(worker['functions']):,} more"
    since = worker["running_since"]
    return (
        str(worker["id"]),
        formatting.value(worker["name"]) or "-",
        worker["door"],
        worker["peer"],
        formatting.local_time(worker["since"]),
        formatting.one_line(functions, 60),
        formatting.one_line(", ".join(formatting.value(handle) for handle in worker["running"]), 40) or "-",
        formatting.duration(max(time.time() - since, 0.0)) if since else "-",
    )
