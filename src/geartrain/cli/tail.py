"""`geartrain tail`: job events as they happen."""

import datetime
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables
from geartrain.failure_reasons import summary

EPILOG = f"""
**Events:** submitted, started, progress, requeued, scheduled, done, failed, cancelled, dead, expired.

**URLs.** It works over `gearman://`, `periodic://`, `periodic+unix://` and `http://`. The other protocols cannot send
events.

**Limits.** The server sends at most 1000 events a second, 200 over `http://`, and reports how many it left out.

{exit_codes.EPILOG}
**Examples**

- `geartrain tail`

- `geartrain tail --function mail --what failed --what dead`

- `geartrain tail --server http://127.0.0.1:4780`

- `geartrain tail --json | jq -r 'select(.what == "failed") | .reason'`
"""

_COLOURS: Final = {**tables.STATE_COLOURS, "submitted": "yellow", "started": "blue", "requeued": "yellow"}


def tail(
    function: Annotated[str, typer.Option(metavar="NAME", help="Only jobs of this function.", show_default=False)] = "",
    what: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="Only events of this kind; repeat it for several kinds.")
    ] = None,
    server: remote.Server = remote.DEFAULT_URL,
    local: remote.Local = False,
    json: remote.Json = False,
) -> None:
    """Print job events as they happen, until Ctrl-C or until the server stops."""

    async def follow(client: Any) -> None:
        from geartrain.client import control

        async for event in control.tail(client, function, what or [], local=local):
            tables.print_lines([tables.json_line(event) if json else _line(event)])

    remote.with_client(server, follow)


def _line(event: dict[str, Any]) -> str:
    if "missed" in event:
        return tables.coloured(f"({event['missed']:,} events left out)", "dim")
    at = datetime.datetime.fromtimestamp(event["at"]).strftime("%H:%M:%S.%f")[:-3]
    word = tables.coloured(f"{event['what']:<9}", _COLOURS.get(event["what"], ""))
    words = (
        at,
        word,
        formatting.value(event["handle"]),
        formatting.value(event["function"]),
        event["door"],
    )
    who = formatting.value(event["worker"])
    return "  ".join(words) + (f"  {who}" if who else "") + (f"  {summary(event['reason'])}" if event["reason"] else "")
