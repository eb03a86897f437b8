"""`geartrain jobs`: what ran, when, and with what result or error; and what is still to run."""

import datetime
import os
import sys
import time
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
import typer

from geartrain.cli import operating
from geartrain.server import history, quantities, upkeep

EPILOG = """
**What is in it.** Every background job: those that wait, and for as long as `keep_records_for` says (one day
unless set otherwise, and at most `keep_records` of them) those that are over. It is read from the store's file,
beside a server that uses it or without one. Jobs in state *queued* wait or run: a store does not note which.

**Times.** `2h`, `30m` or `7d` ago; `2026-11-15` or `2026-11-15T18:30`, local time; `2026-11-15T18:30Z`;
`@1789000000`, in seconds of the epoch. A job that is over counts by when it ended, any other by when it was
submitted.

**Examples**

- `geartrain jobs` shows the newest jobs

- `geartrain jobs --handle H:lap:17` shows what came of one

- `geartrain jobs --state failed --since 1d` shows what went wrong since yesterday, and why

- `geartrain jobs --function mail --since 2026-11-01 --until 2026-12-01 --limit 100000`

- `geartrain jobs --state dead --json | jq -r .reason` is for machines: one object per line
"""

_COLUMNS: Final = ("HANDLE", "FUNCTION", "STATE", "SUBMITTED", "STARTED", "TOOK", "TRIES", "CODE", "OUTCOME")
_LONGEST_OUTCOME: Final = 60
_LONGEST_NAME: Final = 40
_TIME: Final = "%Y-%m-%d %H:%M:%S"


def jobs(
    function: Annotated[str, typer.Option(metavar="NAME", help="Only jobs of this function.", show_default=False)] = "",
    state: Annotated[history.State | None, typer.Option(help="Only jobs in this state.", show_default=False)] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help="Not before this time.", show_default=False)] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="Before this time.", show_default=False)] = "",
    handle: Annotated[str, typer.Option(metavar="HANDLE", help="Only this job.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many, the newest.")] = 50,
    store: operating.Store = None,
    config: operating.Config = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line, for machines.")] = False,
) -> None:
    """Show what ran, when, and with what result or error; and what is still to run."""
    found = upkeep.existing(operating.settings(store, config))
    times = (_moment(since, "--since"), _moment(until, "--until"))
    question = history.Question(os.fsencode(handle), os.fsencode(function), state, *times, limit)
    notices = operating.Notices(operating.Progress("reading"))
    entries = history.find(found, question, time.time(), notices)
    notices.end()
    _say(map(_json, entries) if json else _table(entries))
    if json:
        return
    if not entries:
        print("no job fits", file=sys.stderr)
    elif len(entries) == limit:
        print(f"these are the newest {limit:,}; --limit shows more", file=sys.stderr)


def _moment(text: str, flag: str) -> float:
    """Seconds of the epoch for a time as people write it; 0 for none."""
    if not text:
        return 0.0
    try:
        if text.startswith("@"):
            return float(text[1:])
        if text[-1].isalpha() and not text.endswith("Z"):
            return time.time() - quantities.parse_duration(text)
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        complaint = f"{text!r} is no time such as 2h, 2026-11-15T18:30 or @1789000000"
        raise typer.BadParameter(complaint, param_hint=flag) from None


def _say(lines: Iterable[str]) -> None:
    """`geartrain jobs | head` ends when head does, without a word."""
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush stdout once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None


def _table(entries: list[history.Entry]) -> list[str]:
    """Columns as wide as what is in them."""
    if not entries:
        return []
    rows = [_COLUMNS, *map(_row, entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(entry: history.Entry) -> tuple[str, ...]:
    over = bool(entry.finished_at)
    took = f"{entry.finished_at - entry.started_at:.1f}s" if over and entry.started_at else "-"
    return (
        _shown(entry.handle, _LONGEST_NAME), _shown(entry.function, _LONGEST_NAME), entry.state.value,
        _clock(entry.submitted_at), _clock(entry.started_at), took, str(entry.attempts),
        str(entry.code) if over or entry.code else "-", _outcome(entry),
    )  # fmt: skip


def _outcome(entry: history.Entry) -> str:
    if entry.state is history.State.SCHEDULED:
        return f"due {_clock(entry.run_at)}"
    return _shown(entry.reason.encode() or entry.result, _LONGEST_OUTCOME)


def _clock(moment: float) -> str:
    if not moment:
        return "-"
    try:
        return datetime.datetime.fromtimestamp(moment).strftime(_TIME)
    except (ValueError, OverflowError, OSError):
        return f"@{moment:.0f}"  # further away than calendars go


def _shown(data: bytes, longest: int) -> str:
    """Bytes on one line: what cannot be shown is a dot, what is long is cut, and what is no text only counted."""
    try:
        text = data.decode()[: longest + 1]
    except UnicodeDecodeError:
        return f"({operating.counted(len(data), 'byte')})"
    text = "".join(character if character.isprintable() else "\u00b7" for character in text)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _json(entry: history.Entry) -> str:
    """Everything that is known; times are seconds of the epoch, and null where there was none."""
    return msgspec.json.encode({name: _plain(value) for name, value in entry._asdict().items()}).decode()


def _plain(value: Any) -> Any:
    """Bytes that are text are text; others are base64, said so."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": value}
    if isinstance(value, float):
        return value or None
    return value
