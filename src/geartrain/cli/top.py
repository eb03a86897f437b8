"""`geartrain top`: a live view of the queues in the terminal."""

from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, progress, remote, status, tables
from geartrain.errors import GeartrainError

EPILOG = f"""
The live view needs another package: `pip install 'geartrain[top]'`. `--once` does not.

**Keys.** `s` sorts by the next column, `/` searches, `p` pauses or resumes the function under the cursor, `q` quits.

{exit_codes.EPILOG}
**Examples**

- `geartrain top`

- `geartrain top --once --sort oldest` prints the functions with the oldest jobs
"""


_SHOWN: Final = 100  # functions


def top(
    once: Annotated[bool, typer.Option("--once", help="Print the view once, as plain text, and exit.")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.2, help="Time between updates.")] = 1.0,
    sort: Annotated[
        str, typer.Option(metavar="WORD", help="Sort by name, queued, oldest, running or failed.")
    ] = "queued",
    server: remote.Server = remote.DEFAULT_URL,
    local: remote.Local = False,
    json: remote.Json = False,
) -> None:
    """Watch the queues live in the terminal."""
    if once or json:
        overview, page = remote.with_client(server, lambda client: snapshot(client, "", sort, local))
        if json:
            tables.print_lines([tables.json_line({"overview": overview, "functions": page["items"]})])
        else:
            tables.print_lines([*headline(overview), "", *status.table(page["items"])])
        return
    try:
        from geartrain.cli import top_screen
    except ImportError as error:
        if error.name is None or not error.name.startswith("textual"):
            raise
        raise GeartrainError("the live view needs textual: pip install 'geartrain[top]'; or use --once") from None
    top_screen.run(server, interval, sort, local)


async def snapshot(client: Any, search: str, sort: str, local: bool) -> tuple[Any, Any]:
    """The overview and the functions, as one view shows them."""
    only = remote.only(local)
    overview = await remote.inquire(client, "overview", **only)
    return overview, await remote.inquire(client, "functions", search=search, sort=sort, limit=_SHOWN, **only)


def headline(overview: dict[str, Any]) -> list[str]:
    """The lines above the table."""
    wait, run = overview["wait"], overview["run"]
    oldest = overview["now"] - overview["oldest"] if overview["oldest"] else None
    return [
        f"geartrain  up {formatting.duration(overview['uptime'])}"
        f"  {progress.count_of(overview['connections'], 'connection')}"
        f"  {progress.count_of(overview['workers'], 'worker')}"
        f"  {progress.count_of(overview['functions'], 'function')}",
        f"in {overview['submitted_rate']:,.1f}/s  out {overview['completed_rate']:,.1f}/s"
        f"  queued {overview['queued']:,}  running {overview['running']:,}"
        f"  scheduled {overview['scheduled']:,}  dead {overview['dead']:,}",
        f"wait p50 {formatting.duration(wait['p50'])} p99 {formatting.duration(wait['p99'])}"
        f"  run p50 {formatting.duration(run['p50'])} p99 {formatting.duration(run['p99'])}"
        f"  oldest {formatting.duration(oldest)}",
    ]
