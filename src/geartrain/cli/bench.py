"""`geartrain bench`: measure a running server over any protocol."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from geartrain.cli import exit_codes, formatting, progress, remote, tables

if TYPE_CHECKING:
    from geartrain.cli import bench_runs

EPILOG = f"""
**Measurements.** *round trips*: foreground jobs, from submit to result; the workers return the payload.
*background submits*: from submit to acknowledgement; with a durable store the job is on disk by then. *drain*: how fast
one worker empties the queue that the background submits filled.

The jobs have a function of their own, with a random name, and all of them are done at the end. The Python library
produces the load: if the server is faster than the library, the numbers are those of the library.

{exit_codes.EPILOG}
**Examples**

- `geartrain bench` measures the server at the default address

- `geartrain bench periodic://127.0.0.1:5000 --in-flight 50`

- `geartrain bench gearman://old-server:4730 --json > gearmand.json` works for any Gearman server
"""

_HEAD: Final = ("WHAT", "JOBS", "RATE/S", "P50", "P95", "P99", "MAX", "ERRORS")


class Measurement(NamedTuple):
    """A row of the report."""

    name: str
    measure: Callable[["bench_runs.BenchPlan", "bench_runs.Report"], Awaitable["bench_runs.BenchResult"]]
    background: bool


def bench(
    url: Annotated[str, typer.Argument(metavar="[URL]", help="The server's URL.")] = "",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Jobs per measurement.")] = 10_000,
    in_flight: Annotated[int, typer.Option(metavar="N", min=1, help="Jobs in flight at a time.")] = 50,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Worker processes.")] = 1,
    payload: Annotated[int, typer.Option(metavar="BYTES", min=0, help="Size of each payload.")] = 64,
    server: remote.Server = remote.DEFAULT_URL,
    json: remote.Json = False,
) -> None:
    """Measure a running server: rate, latency, errors."""
    from geartrain.cli import bench_runs
    from geartrain.client.protocols import registry

    address = url or server
    capabilities = registry.capabilities(address)
    function = f"geartrain-bench-{secrets.token_hex(4)}"
    plan = bench_runs.BenchPlan(address, function, jobs, in_flight, workers, b"x" * payload)
    measurements = (
        Measurement("round trips", bench_runs.round_trips, False),
        Measurement("background submits", bench_runs.background_submits, True),
        Measurement("drain", bench_runs.drain, True),
    )
    summaries: list[dict[str, Any]] = []
    for measurement in measurements:
        if measurement.background and not capabilities.background:
            continue
        line = progress.ProgressLine(measurement.name)
        result = asyncio.run(_run(measurement, plan, line))
        line.end()
        summaries.append({"what": measurement.name, **result.summary()})
    if json:
        tables.print_lines(
            [tables.json_line({"url": address, **plan._asdict(), "payload": payload, "rows": summaries})]
        )
    else:
        tables.print_lines(
            [f"{address}: {jobs:,} jobs of {payload} bytes, {in_flight} in flight, {workers} worker process(es)", ""]
        )
        tables.print_lines(tables.table(_HEAD, map(_cells, summaries), frozenset(_HEAD[1:])))
        tables.print_lines(f"{row['what']}: {row['first_error']}" for row in summaries if row["errors"])
    if any(row["errors"] for row in summaries):
        raise typer.Exit(exit_codes.FAILED)


async def _run(
    measurement: Measurement, plan: "bench_runs.BenchPlan", line: progress.ProgressLine
) -> "bench_runs.BenchResult":
    return await measurement.measure(plan, line)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    times = [formatting.latency(row[name]) for name in ("p50", "p95", "p99", "max")]
    return (row["what"], f"{row['jobs']:,}", f"{row['rate']:,.0f}", *times, f"{row['errors']:,}")
