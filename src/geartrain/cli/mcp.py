"""`geartrain mcp`: let an assistant look at a server, by the Model Context Protocol."""

import asyncio
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, mcp_tools, remote, tables
from geartrain.errors import GeartrainError

_VERBS: Final = "\n\n".join(f"- `{name}`: {verb.help}" for name, verb in mcp_tools.allowable().items())
_TOOLS: Final = "\n\n".join(f"- `{tool.name}`: {tool.description}" for tool in mcp_tools.tools().values())

EPILOG: Final = f"""
**What it is.** A server of the Model Context Protocol on standard input and output. An assistant starts it, and can
then answer questions such as "what failed last night, and why?" or "why does this job wait?". It needs another
package: `pip install 'geartrain[mcp]'`.

**Tools.** All of them read, and change nothing:

{_TOOLS}

`status`, `functions`, `failures`, `workers` and each job are resources too.

**Verbs for `--allow`.** They change something. One that is not allowed is not offered, so the assistant does not know
of it:

{_VERBS}

**Rights.** The assistant can do what the token allows: make a user with the right `read`, of some functions if
payloads of others are private. Payloads and reasons come from the users of the server, and an assistant may take them
for instructions; allow only verbs whose misuse you can undo.

{exit_codes.EPILOG}
**Examples**

- `geartrain mcp --server https://jobs.example.org --token-file ~/.config/geartrain/token` reads only

- `geartrain mcp --allow retry --allow pause --allow resume` can do three things more

- `geartrain mcp --allow retry --list` prints what would be offered
"""

_MISSING: Final = "`geartrain mcp` needs the package mcp, version 2 or newer: pip install 'geartrain[mcp]'"


def mcp(
    server: remote.Server = remote.DEFAULT_URL,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="VERB", help="Offer this verb too. May be repeated.", show_default=False),
    ] = None,
    list_tools: Annotated[bool, typer.Option("--list", help="Print the tools that are offered, and exit.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --list: print JSON, with the schemas.")] = False,
) -> None:
    """Let an assistant look at the server, by the Model Context Protocol on standard input and output."""
    for name in allow or ():
        if name not in mcp_tools.allowable():
            raise typer.BadParameter(f"{name!r} is no verb for --allow; there are {', '.join(mcp_tools.allowable())}")
    tools = mcp_tools.tools(allow or ())
    if list_tools:
        _print(tools, json)
        return
    try:
        from geartrain.cli.mcp_server import ToolServer
    except ImportError:
        raise GeartrainError(_MISSING) from None

    async def serve() -> None:
        await ToolServer(server, tools).run()

    asyncio.run(serve())


def _print(tools: dict[str, mcp_tools.Tool], json: bool) -> None:
    if json:
        described: list[dict[str, Any]] = [
            {"name": tool.name, "description": tool.description, "changes": tool.changes, "schema": tool.schema}
            for tool in tools.values()
        ]
        tables.print_lines([tables.json_line(described)])
        return
    rows = ((tool.name, "changes" if tool.changes else "reads", tool.description) for tool in tools.values())
    tables.print_lines(tables.table(("TOOL", "", "DESCRIPTION"), rows, frozenset()))
