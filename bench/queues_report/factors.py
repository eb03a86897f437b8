"""The comparison of the Python task queues as a table for a page: one line for each queue, one column for each row."""

from collections.abc import Iterator, Mapping, Sequence

from bench import figures
from bench.contenders import Contender
from bench.groups import Group, Row
from bench.report import Board

HEAD = "factor in Geartrain's favour, compared with"


def table(
    board: Board, group: Group, ours: str, versions: Mapping[str, str], where: Mapping[str, str]
) -> Iterator[str]:
    """Markdown; `ours` is the one that all others are compared with."""
    rows = board.rows(group)
    yield _line([HEAD, "its tasks are", *(row.title for row in rows)])
    yield _line(["---"] * (len(rows) + 2))
    for contender in group.rows[0].contenders:
        if contender.name != ours:
            cells = [_cell(board, row, ours, contender) for row in rows]
            yield _line(
                [f"{contender.name} {versions.get(contender.name, '')}".rstrip(), where[contender.name], *cells]
            )
    yield ""
    yield from _notes(rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(board: Board, row: Row, ours: str, other: Contender) -> str:
    """The median of the rounds, and the lowest and the highest of them."""
    if other not in row.contenders:
        return "has none"
    found = board.of(row)
    pairs = (found.get(ours, []), found.get(other.name, []))
    rounds = figures.ratios(*pairs, row.less_is_better)
    if not rounds:
        return "did not finish"
    cell = figures.short(figures.ratio(*pairs, row.less_is_better))
    if len(rounds) > 1:
        cell += f" ({figures.short(min(rounds))} to {figures.short(max(rounds))})"
    if len(rounds) < len(pairs[1]):
        cell += f", finished in {len(rounds)} of {len(pairs[1])} rounds"
    return f"{cell} \\*" if other.name in row.notes else cell


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        for name, note in row.notes.items():
            yield f"\\* {name}, {row.title}: {note}."
