"""`geartrain bench`: measure a running server, by any protocol, always the same way."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from geartrain.cli import exit_codes, formatting, progress, remote, tables

if TYPE_CHECKING:
    from geartrain.cli import bench_runs

EPILOG = f"""
**What is measured.** *round trips*: foreground jobs, from the submission until the result is there, run by workers that
give the payload back. *background submits*: from the submission until the server has acknowledged, which for a durable
store means that the job is on disk. *drain*: how fast one worker empties that queue. The jobs belong to a function
of their own with a random name, and all of them are done at the end.

The load comes from this Python library: where a server is faster than the library, the figure is the library's.

{exit_codes.EPILOG}
**Examples**

- `geartrain bench` measures the server at the usual place

- `geartrain bench periodic://127.0.0.1:5000 --in-flight 50`

- `geartrain bench gearman://old-server:4730 --json > gearmand.json` works for any Gearman server
"""

_HEAD: Final = ("WHAT", "JOBS", "RATE/S", "P50", "P95", "P99", "MAX", "ERRORS")


class Row(NamedTuple):
    """One thing that is measured."""

    name: str
    measure: Callable[["bench_runs.Plan", "bench_runs.Report"], Awaitable["bench_runs.BenchResult"]]
    background: bool


def bench(
    url: Annotated[str, typer.Argument(metavar="[URL]", help="The server.")] = "",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Jobs for each measurement.")] = 10_000,
    in_flight: Annotated[int, typer.Option(metavar="N", min=1, help="So many under way at once.")] = 50,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Worker processes.")] = 1,
    payload: Annotated[int, typer.Option(metavar="BYTES", min=0, help="The size of each payload.")] = 64,
    server: remote.Server = remote.USUAL,
    json: remote.Json = False,
) -> None:
    """Measure a running server: rate, latency, errors."""
    from geartrain.cli import bench_runs
    from geartrain.client.protocols import registry

    place = url or server
    can = registry.capabilities(place)
    function = f"geartrain-bench-{secrets.token_hex(4)}"
    plan = bench_runs.Plan(place, function, jobs, in_flight, workers, b"x" * payload)
    rows = (
        Row("round trips", bench_runs.round_trips, False),
        Row("background submits", bench_runs.background_submits, True),
        Row("drain", bench_runs.drain, True),
    )
    summaries: list[dict[str, Any]] = []
    for row in rows:
        if row.background and not can.background:
            continue
        bar = progress.Progress(row.name)
        tally = asyncio.run(_run(row, plan, bar))
        bar.end()
        summaries.append({"what": row.name, **tally.summary()})
    if json:
        tables.say([tables.json_line({"url": place, **plan._asdict(), "payload": payload, "rows": summaries})])
    else:
        tables.say(
            [f"{place}: {jobs:,} jobs of {payload} bytes, {in_flight} in flight, {workers} worker process(es)", ""]
        )
        tables.say(tables.table(_HEAD, map(_cells, summaries), frozenset(_HEAD[1:])))
        tables.say(f"{row['what']}: {row['first_error']}" for row in summaries if row["errors"])
    if any(row["errors"] for row in summaries):
        raise typer.Exit(exit_codes.FAILED)


async def _run(row: Row, plan: "bench_runs.Plan", bar: progress.Progress) -> "bench_runs.BenchResult":
    return await row.measure(plan, bar)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    times = [formatting.fine_span(row[name]) for name in ("p50", "p95", "p99", "max")]
    return (row["what"], f"{row['jobs']:,}", f"{row['rate']:,.0f}", *times, f"{row['errors']:,}")
