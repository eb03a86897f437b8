"""What the verbs print: tables and colours for people, plain columns when piped, JSON for machines."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import typer

Row = Sequence[str]

_PLAIN: Final = "\x1b[0m"
_COLOURS: Final = {
    "dim": "\x1b[2m",
    "bold": "\x1b[1m",
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "blue": "\x1b[34m",
    "cyan": "\x1b[36m",
}
# How a job's state looks, wherever it is shown.
STATE_COLOURS: Final = {
    "scheduled": "cyan",
    "queued": "yellow",
    "running": "blue",
    "done": "green",
    "failed": "red",
    "dead": "red",
    "cancelled": "dim",
}


def colourful() -> bool:
    """Whether somebody looks at standard output who likes colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """The text in a colour, if there are colours here."""
    code = _COLOURS.get(colour)
    return f"{code}{text}{_PLAIN}" if code and text.strip() and colourful() else text


def table(head: Row, rows: Iterable[Row], right: frozenset[str] = frozenset(), state: str = "") -> list[str]:
    """Lines with columns as wide as what is in them; `right` names columns of numbers, `state` the one to colour."""
    rows = list(rows)
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(row: Row, paint_cell: Callable[[int, str], str]) -> str:
        cells = (
            paint_cell(column, cell.rjust(width) if head[column] in right else cell.ljust(width))
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    def body(column: int, cell: str) -> str:
        return paint(cell, STATE_COLOURS.get(cell.strip(), "")) if head[column] == state else cell

    return [line(head, lambda _, cell: paint(cell, "bold")), *(line(row, body) for row in rows)]


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """One fact per line; those without a value are left out."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0)
    return [f"{paint(name.ljust(width), 'bold')}  {value}" for name, value in shown]


def say(lines: Iterable[str]) -> None:
    """Print; `geartrain jobs | head` ends when head does, without a word."""
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush stdout once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None


def json_line(value: Any) -> str:
    """One value on one line."""
    return msgspec.json.encode(value).decode()
