"""`geartrain audit`: who did what."""

import datetime
import sys
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote, tables

EPILOG = f"""
**What it shows.** Operators' verbs that changed something, requests that were refused, logins, starts, stops and
reloads, the oldest first. Payloads and tokens are never in it. It needs the right `admin` for all functions. With the
setting `audit_file` the entries are read from that file and from its older parts, as logrotate leaves them
(`audit.log.1`, `audit.log.2.gz`, `audit.log-20261116`), otherwise there are the newest 1,000 since the start.

**Times.** `2h`, `30m` or `7d` ago; `2026-11-15` or `2026-11-15T18:30` in local time; `2026-11-15T18:30Z`; `@1789000000`
in epoch seconds.

{exit_codes.EPILOG}
**Examples**

- `geartrain audit --since 1d`

- `geartrain audit --refused` lists what was refused, with the reasons

- `geartrain audit --who ops --verb cancel --json`
"""

_COLUMNS: Final = ("TIME", "WHO", "PROTOCOL", "PEER", "VERB", "OUTCOME", "DETAILS")
_LONGEST_DETAILS: Final = 100
_PAGE: Final = 1000  # entries per request


def audit(
    since: Annotated[str, typer.Option(metavar="TIME", help="Only entries since this time.", show_default=False)] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="Only entries before this time.", show_default=False)] = "",
    who: Annotated[str, typer.Option(metavar="NAME", help="Only what this user did.", show_default=False)] = "",
    verb: Annotated[str, typer.Option(metavar="VERB", help="Only this verb.", show_default=False)] = "",
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most N entries, the newest.")] = 100,
    server: remote.Server = remote.DEFAULT_URL,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """List who did what: operators' verbs, refused requests, logins, starts and stops."""
    filter = {
        "since": formatting.parse_past_time(since, "--since"),
        "until": formatting.parse_past_time(until, "--until"),
        "who": who,
        "verb": verb,
        "refused": refused,
    }
    entries = remote.with_client(server, lambda client: _pages(client, filter, limit))
    entries.reverse()
    if json:
        tables.print_lines(map(tables.json_line, entries))
        return
    tables.print_lines(tables.table(_COLUMNS, map(_row, entries)) if entries else [])
    if not entries:
        print("no entries match", file=sys.stderr)
    elif len(entries) == limit:
        print(f"only the newest {limit:,} are shown; use --limit for more", file=sys.stderr)


async def _pages(client: Any, filter: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    from geartrain.client import control

    entries: list[dict[str, Any]] = []
    after = ""
    while len(entries) < limit:
        count = min(_PAGE, limit - len(entries))
        page = await control.ask(client, "audit", **filter, limit=count, after=after)
        entries += page["items"]
        after = page["after"]
        if not after:
            break
    return entries


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    time = datetime.datetime.fromisoformat(entry["time"]).timestamp()
    return (
        formatting.local_time(time),
        formatting.one_line(entry.get("who", ""), 40) or "-",
        entry.get("protocol", "") or "-",
        formatting.one_line(entry.get("peer", ""), 40) or "-",
        formatting.one_line(entry["verb"], 40) or "-",
        entry.get("outcome", "ok"),
        formatting.one_line(_details(entry), _LONGEST_DETAILS),
    )


def _details(entry: dict[str, Any]) -> str:
    """What an entry is about, and why it was refused."""
    if entry.get("left_out"):
        return f"{entry['left_out']:,} entries left out: {entry.get('why', '')}"
    words = [_argument(name, value) for name, value in entry.get("arguments", {}).items()]
    if entry.get("why"):
        words.append(f"({entry['why']})")
    return " ".join(words)


def _argument(name: str, value: Any) -> str:
    """One argument. The words of a command have no names."""
    if isinstance(value, dict):
        return " ".join(_argument(f"{name}.{key}", one) for key, one in value.items())
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if name == "words" else f"{name}={text}"
