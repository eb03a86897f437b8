"""`geartrain top`: a live view in the terminal."""

from typing import Annotated, Any

import typer

from geartrain.cli import exit_codes, formatting, remote, status, tables
from geartrain.errors import GeartrainError

EPILOG = f"""
The live view needs one more package: `pip install 'geartrain[top]'`. `--once` does not.

**Keys.** `s` sorts by the next column, `/` searches, `p` pauses or resumes the function under the cursor, `q` quits.

{exit_codes.EPILOG}
"""


def top(
    once: Annotated[bool, typer.Option("--once", help="Print one picture in plain text, and end.")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.2, help="Look again after so long.")] = 1.0,
    sort: Annotated[str, typer.Option(metavar="WORD", help="By name, queued, oldest, running or failed.")] = "queued",
    server: remote.Server = remote.USUAL,
    json: remote.Json = False,
) -> None:
    """Watch the server live in the terminal."""
    if once or json:
        overview, page = remote.with_client(server, lambda client: picture(client, "", sort))
        if json:
            tables.say([tables.json_line({"overview": overview, "functions": page["items"]})])
        else:
            tables.say([*headline(overview), "", *status.table(page["items"])])
        return
    try:
        from geartrain.cli import top_screen
    except ImportError as error:
        if error.name is None or not error.name.startswith("textual"):
            raise
        raise GeartrainError("the live view needs textual: pip install 'geartrain[top]'; or use --once") from None
    top_screen.run(server, interval, sort)


async def picture(client: Any, search: str, sort: str, limit: int = 100) -> tuple[Any, Any]:
    """What one look shows."""
    from geartrain.client import control

    overview = await control.ask(client, "overview")
    return overview, await control.ask(client, "functions", search=search, sort=sort, limit=limit)


def headline(overview: dict[str, Any]) -> list[str]:
    """The numbers above the table."""
    wait, run = overview["wait"], overview["run"]
    oldest = overview["now"] - overview["oldest"] if overview["oldest"] else None
    return [
        f"geartrain  up {formatting.span(overview['uptime'])}  {overview['connections']:,} connections"
        f"  {overview['workers']:,} workers  {overview['functions']:,} functions",
        f"in {overview['submitted_rate']:,.1f}/s  done {overview['completed_rate']:,.1f}/s  waiting"
        f" {overview['queued']:,}  running {overview['running']:,}  later {overview['scheduled']:,}"
        f"  dead {overview['dead']:,}",
        f"wait p50 {formatting.span(wait['p50'])} p99 {formatting.span(wait['p99'])}  run p50"
        f" {formatting.span(run['p50'])} p99 {formatting.span(run['p99'])}  oldest {formatting.span(oldest)}",
    ]
