"""`geartrain bridge`: join a Redis with GearMonkey's jobs and a server; workers of either run the jobs of both."""

import asyncio
import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from geartrain.cli import connection_options, exit_codes, progress, remote, tables
from geartrain.client import stop_signals
from geartrain.client.bridge import direction as directions

EPILOG: Final = f"""
**What it is for.** Programs that use GearMonkey on a Redis, and cannot all change over at once. While the command
runs, a client may stay on Redis when the workers have moved to the server, and the other way round. Nothing has to
change in programs that stay.

**Which jobs go where.** A job goes only to a side that has a worker for its function. While its own side has no
worker, it goes at once. While its own side has workers, they come first: only when jobs have waited for the time of
`--grace`, so all of them are busy, jobs go to the other side, as many as it has workers, and only while nothing waits
there. A job that was sent to the other side is not sent from there again.

**What crosses.** Payload, progress, result, failure with its data, and from Redis the priority; scheduled jobs go
when they are due. Parts of results and warnings do not reach GearMonkey clients.

**No job is lost**, whatever is killed. A job of Redis is held by a lease until the result of the server has been
written, and one of the server as every worker holds a job. A job that was under way when the command was killed may
run twice; it is one job if the other side still has it. Only one bridge serves a function of a Redis at a time, a
second one waits for its end.

**Stopping.** The first Ctrl-C or SIGTERM takes no more jobs, and waits for those that are under way; the second one
ends at once.

**Servers and tokens.** The second URL is a Geartrain by any of its protocols, or gearmand. `--token-file` and the
environment have the token of the server, `--redis-password-file` the password of Redis.

{exit_codes.EPILOG}
**Examples**

- `geartrain bridge redis://old gearman://new resize mail` joins two functions

- `geartrain bridge redis://old/3 gearman://new --all` joins every function that either side has, in Redis' database 3

- `geartrain bridge rediss://old https://new resize --direction to-server` lets only the server's workers help
"""

_REDIS_SCHEMES: Final = {"redis": "gearmonkey", "rediss": "gearmonkeys"}


def bridge(
    redis: Annotated[
        str, typer.Argument(metavar="REDIS", help="The URL of the Redis: redis://, or rediss:// with TLS.")
    ],
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The URL of the server.")],
    functions: Annotated[
        list[str] | None, typer.Argument(metavar="[FUNCTION]...", help="Join these functions.", show_default=False)
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Join every function that either side has, also later.")] = False,
    direction: Annotated[
        str, typer.Option(metavar="WAY", help=f"Which way jobs may go: {', '.join(directions.DIRECTIONS)}.")
    ] = directions.BOTH,
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long jobs wait for busy workers of their own side.")
    ] = 2.0,
    lease: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="After which Redis has the jobs of a killed bridge again.")
    ] = 30.0,
    redis_password_file: Annotated[
        Path | None, connection_options.secret_option("Send the password in this file to Redis.")
    ] = None,
    json: remote.Json = False,
) -> None:
    """Join a Redis with GearMonkey's jobs and a server: workers of either run the jobs of both."""
    if bool(functions) == all:
        raise typer.BadParameter("name the functions to join, or use --all")
    if direction not in directions.DIRECTIONS:
        raise typer.BadParameter(f"{direction!r} is no direction; use {', '.join(directions.DIRECTIONS)}")
    password = connection_options.read_secret(redis_password_file)
    chosen = (tuple(functions or ()), direction, grace, lease, password)
    summary = asyncio.run(_bridge(_gearmonkey_url(redis), server, chosen))
    if json:
        tables.print_lines([tables.json_line(dataclasses.asdict(summary))])
        return
    print(f"the server ran {progress.count_of(summary.to_server, 'job')} of Redis, and Redis {summary.to_redis} of it")
    if summary.failed:
        print(f"{progress.count_of(summary.failed, 'job')} of these failed")


async def _bridge(redis: str, server: str, chosen: tuple[Any, ...]) -> Any:
    from geartrain.client.bridge.bridge import Bridge, BridgeOptions

    bridge = Bridge(redis, server, BridgeOptions(*chosen), _tell)
    with stop_signals.handled(bridge.stop):
        return await bridge.run()


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _gearmonkey_url(url: str) -> str:
    """The library's URL for one of Redis; its own is taken too."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in (*_REDIS_SCHEMES, *_REDIS_SCHEMES.values()):
        raise typer.BadParameter(f"{url!r} is no URL of a Redis; write redis://127.0.0.1:6379/0")
    if "@" in rest:
        raise typer.BadParameter("a password does not belong on the command line; use --redis-password-file")
    return f"{_REDIS_SCHEMES.get(scheme, scheme)}://{rest}"
