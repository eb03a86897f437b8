"""`geartrain workers`: who is connected to work, by which protocol, and what they are doing."""

import time
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables

EPILOG = f"""
A C gearmand is asked in its own words, and knows less.

{exit_codes.EPILOG}
**Examples**

- `geartrain workers`

- `geartrain workers resize` shows who offers `resize`, or is called so

- `geartrain workers --json | jq -r 'select(.idle) | .name'`
"""

_HEAD: Final = ("ID", "NAME", "DOOR", "PEER", "SINCE", "FUNCTIONS", "RUNNING", "FOR")


def workers(
    search: Annotated[str, typer.Argument(metavar="[TEXT]", help="Only those with this in name or functions.")] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many.")] = 100,
    server: remote.Server = remote.USUAL,
    json: remote.Json = False,
) -> None:
    """Show who is connected to work."""
    found = remote.with_client(server, lambda client: _ask(client, search, limit))["items"]
    if json:
        tables.say(map(tables.json_line, found))
    else:
        tables.say(tables.table(_HEAD, map(_row, found), frozenset({"ID"})) if found else ["no workers"])


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
        formatting.clock(worker["since"]),
        formatting.one_line(functions, 60),
        formatting.one_line(", ".join(formatting.value(handle) for handle in worker["running"]), 40) or "-",
        formatting.span(max(time.time() - since, 0.0)) if since else "-",
    )
