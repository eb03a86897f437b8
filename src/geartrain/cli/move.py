"""`geartrain move`: move the jobs of a running Gearman server to another server."""

import asyncio
import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from geartrain.cli import connection_options, exit_codes, progress, remote, tables
from geartrain.client import stop_signals

EPILOG: Final = f"""
**How.** The command is a worker of the old server and a client of the new one. A background job is completed at the
old server after the new one has acknowledged it, so none is lost if the command, a server or the network fails; a job
that was under way then may be at both servers. A foreground job stays where its client waits, and the workers of the
new server run it: progress, data and the result are passed on.

**What stays the same.** Function, payload, unique key, and the priority as far as `prioritystatus` of the old server
shows it. Handles are new.

**What stays behind.** Jobs that are not due yet, jobs that workers of the old server run, and jobs with a reducer. With
`--follow` the command waits for them and for new submissions, until Ctrl-C.

The old server may be gearmand with any of its queues, or a Geartrain; for the latter, `geartrain dump` and `load` carry
more. The new server is named by any URL whose protocol has background jobs and unique keys.

**Tokens.** `--token-file` and the environment have the token of the new server, `--old-token-file` that of the old one.

{exit_codes.EPILOG}
**Examples**

- `geartrain move gearman://old gearman://new` moves everything that waits

- `geartrain move gearman://old gearman://new resize mail` moves the jobs of two functions

- `geartrain move gearman://old:4730 gearman://127.0.0.1:4731 --follow` while clients change over one by one
"""

_FOLLOWING: Final = "moving; press Ctrl-C when no client uses the old server any more"


def move(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The URL of the server that has the jobs.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The URL of the server that gets them.")],
    functions: Annotated[
        list[str] | None, typer.Argument(metavar="[FUNCTION]...", help="Only these functions.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    old_token_file: Annotated[
        Path | None, connection_options.secret_option("Send the token in this file to the old server.")
    ] = None,
    json: remote.Json = False,
) -> None:
    """Move the jobs of a running Gearman server to another server."""
    line = progress.ProgressLine("moving")
    if follow:
        print(_FOLLOWING, file=sys.stderr)
    try:
        token = connection_options.read_secret(old_token_file)
        summary = asyncio.run(_move(old, new, functions or [], follow, line, token))
    finally:
        line.end()
    if json:
        tables.print_lines([tables.json_line(dataclasses.asdict(summary))])
        return
    print(f"moved {progress.count_of(summary.moved, 'job')} from {old} to {new}")
    if summary.passed_on:
        print(f"passed on {progress.count_of(summary.passed_on, 'foreground job')}")
    if summary.left:
        print(
            f"{progress.count_of(summary.left, 'job')} left at {old}: not due yet, run by its own workers"
            f"{', or with a reducer' if summary.with_reducer else ''}; --follow waits for them"
        )


async def _move(
    old: str, new: str, functions: list[str], follow: bool, line: progress.ProgressLine, old_token: str
) -> Any:
    from geartrain.client.async_client import AsyncClient
    from geartrain.client.move.mover import Mover

    async with AsyncClient(new, patience=remote.PATIENCE) as client:
        mover = Mover(old, client, line, old_token)
        with stop_signals.handled(mover.stop):
            return await mover.run(functions, follow)
