"""Output of the verbs: tables, with colours on a terminal, and JSON."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

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
# Of job states, in every table.
STATE_COLOURS: Final = {
    "scheduled": "cyan",
    "blocked": "cyan",
    "queued": "yellow",
    "running": "blue",
    "done": "green",
    "failed": "red",
    "dead": "red",
    "cancelled": "dim",
    "expired": "yellow",
}


def colours_wanted() -> bool:
    """Whether standard output is a terminal that shows colours, and the user has not turned them off."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str) -> str:
    """The text in a colour, where colours are wanted."""
    code = _COLOURS.get(colour)
    return f"{code}{text}{_PLAIN}" if code and text.strip() and colours_wanted() else text


def table(head: Row, rows: Iterable[Row], right: frozenset[str] = frozenset(), state: str = "") -> list[str]:
    """Lines of aligned columns; `right` names columns to align right, `state` the column of job states to colour."""
    rows = list(rows)
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(row: Row, format_cell: Callable[[int, str], str]) -> str:
        cells = (
            format_cell(column, cell.rjust(width) if head[column] in right else cell.ljust(width))
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    def body(column: int, cell: str) -> str:
        return coloured(cell, STATE_COLOURS.get(cell.strip(), "")) if head[column] == state else cell

    return [line(head, lambda _, cell: coloured(cell, "bold")), *(line(row, body) for row in rows)]


def with_server(head: Row, rows: Iterable[Row], items: Sequence[dict[str, Any]]) -> tuple[Row, Iterable[Row]]:
    """A table with a last column for the server of each item, if they are of a cluster."""
    servers = [str(item.get("server", "")) for item in items]
    if not any(servers):
        return head, rows
    return (*head, "SERVER"), ((*row, server or "-") for row, server in zip(rows, servers, strict=True))


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each name and value; empty values are skipped."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0)
    return [f"{coloured(name.ljust(width), 'bold')}  {value}" for name, value in shown]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, at once: whoever reads a pipe gets them, and a pipe that was closed ends the command here."""
    for line in lines:
        print(line)
    sys.stdout.flush()


def json_line(value: Any) -> str:
    """A value as one line of JSON."""
    import msgspec  # takes longer than all that a table needs

    return msgspec.json.encode(value).decode()
