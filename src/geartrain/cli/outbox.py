"""`geartrain outbox`: move jobs from a transactional outbox in your own database to a server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from geartrain.cli import command_group, exit_codes, progress, remote, tables
from geartrain.client import stop_signals

if TYPE_CHECKING:
    from geartrain.outbox.source import OutboxCounts, OutboxSource

T = TypeVar("T")

_DATABASE: Final = """
**The database** is `postgresql://user@host/name`, with everything else that libpq takes, or `sqlite:///path/to/file`.
"""
RELAY_EPILOG: Final = f"""
A program writes jobs into its own database, in the transaction that they belong to (`geartrain.outbox.submit`). This
command moves them to the server. A row is deleted when the server has its job on disk, so none is lost if the command,
the server or the database fails. A job that was on its way then is not submitted twice: the server is asked for it
first.

PostgreSQL notifies the command of new rows; it looks by itself every `--poll` seconds, in case a pooler does not pass
the notifications on. Several of these commands can run for one database: on PostgreSQL they share the work, on SQLite
one works and the others wait for its end.

A job that the server refuses, for a full queue or a right that is missing, stays in the table with the reason, and is
tried again, after a minute at most. SIGTERM and Ctrl-C end the command after the jobs that are on their way.
{_DATABASE}
{exit_codes.EPILOG}
**Examples**

- `geartrain outbox relay postgresql://app@localhost/shop --server gearman://jobs:4730`

- `geartrain outbox relay sqlite:///srv/shop.db --once` moves what is there, and ends
"""
CREATE_EPILOG: Final = f"""
It executes one statement, `CREATE TABLE IF NOT EXISTS geartrain_outbox ...`. The guide has it, for migrations.
{_DATABASE}
{exit_codes.EPILOG}
"""
STATUS_EPILOG: Final = f"""
{_DATABASE}
{exit_codes.EPILOG}
"""

Database = Annotated[str, typer.Argument(metavar="DATABASE", help="The URL of the database.")]


def add(app: typer.Typer) -> None:
    """Add the group of commands."""
    commands: command_group.Commands = {
        "relay": (relay, RELAY_EPILOG),
        "create": (create, CREATE_EPILOG),
        "status": (status, STATUS_EPILOG),
    }
    help = "Move jobs from a transactional outbox in your own database to a server."
    command_group.add(app, "outbox", help, commands)


def relay(
    database: Database,
    server: remote.Server = remote.DEFAULT_URL,
    once: Annotated[bool, typer.Option("--once", help="Move what is in the outbox now, then end.")] = False,
    batch: Annotated[int, typer.Option(metavar="ROWS", min=1, max=10_000, help="Send so many jobs at a time.")] = 500,
    poll: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Look for rows this often without a notification.")
    ] = 5.0,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON.")] = False,
) -> None:
    """Move jobs from the outbox to a server, as they are written."""
    from geartrain.cli.work_log import WorkLog

    WorkLog("info", as_json=log_json)
    moved = asyncio.run(_relay(database, server, once, batch, poll))
    print(f"moved {progress.count_of(moved, 'job')} to {server}")


async def _relay(database: str, server: str, once: bool, batch: int, poll: float) -> int:
    from geartrain.outbox import Relay

    relay = Relay(database, *server.split(","), batch=batch, poll=poll)
    if once:
        try:
            return await relay.drain()
        finally:
            await relay.close()
    with stop_signals.handled(relay.stop):
        print(f"moving jobs to {server}; press Ctrl-C to end", flush=True)
        await relay.run()
    return relay.moved


def create(database: Database) -> None:
    """Create the table of the outbox, unless there is one."""

    async def execute(source: "OutboxSource") -> None:
        await source.create_table()

    _with_source(database, execute)


def status(database: Database, json: remote.Json = False) -> None:
    """Show how many jobs wait in the outbox, for how long, and what was refused."""

    async def execute(source: "OutboxSource") -> "OutboxCounts":
        return await source.counts()

    counts = _with_source(database, execute)
    if json:
        tables.print_lines([tables.json_line(counts._asdict())])
        return
    age = f", the oldest for {counts.oldest:.0f} seconds" if counts.waiting else ""
    print(f"{progress.count_of(counts.waiting, 'job')} in the outbox{age}")
    if counts.refused:
        print(f"{counts.refused} of them refused, the last time: {counts.reason}")


def _with_source(database: str, execute: "Callable[[OutboxSource], Awaitable[T]]") -> T:
    """Run a coroutine function on an outbox, and return its result."""

    async def session() -> T:
        from geartrain.outbox.source import source_of

        source = source_of(database)
        try:
            await source.open()
            return await execute(source)
        finally:
            await source.close()

    return asyncio.run(session())
