"""`geartrain workers`: the connected workers."""

import time
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables

EPILOG = f"""
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
    json: remote.Json = False,
) -> None:
    """List the connected workers, their functions and the jobs they run."""
    items = remote.with_client(server, lambda client: _ask(client, search, limit))["items"]
    if json:
        tables.print_lines(map(tables.json_line, items))
    else:
        tables.print_lines(tables.table(_HEAD, map(_row, items), frozenset({"ID"})) if items else ["no workers"])


async def _ask(client: Any, search: str, limit: int) -> Any:
    from geartrain.client import control, gearmand

    server = str((await client.connection()).address)
    if await gearmand.is_gearmand(server):
        return await gearmand.workers(server, search)
    return await control.ask(client, "workers", search=search, limit=limit)


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
