"""What was found, and how it is told: a table for people, JSON for programs, bars for the eye."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench import figures, machine, picture
from bench.figures import Rounds, Sample
from bench.groups import Effort, Finding, Group, Row, Step

FORMAT = 1
NAME = 24
TABLE = f"{{:{NAME}}} {{:>12}} {{:>7}} {{:>11}} {{:>9}} {{:>9}} {{:>6}} {{:>8}} {{:>16}}"
HEAD = TABLE.format("", "median", "spread", "server us", "p50 us", "p99 us", "load", "late us", "Geartrain is")
LEGEND = (
    "Medians over the rounds. spread: the best round over the worst. server us: processor time of the server for each",
    "job; with the task queues, of its programs too. p50, p99: waits of single requests. load: how busy the load was;",
    "near 100%, the server could do more. late us: by how much the load itself was late, at the 99th percentile.",
    "Geartrain is: so many times better than this one, in the same round; above 1 it is ahead. Where Geartrain takes",
    "part twice, the figures are in the order of its lines.",
)


class Board:
    """All figures of a run."""

    def __init__(self, groups: Sequence[Group], keys: frozenset[str]) -> None:
        self.groups = [group for group in groups if any(row.key in keys for row in group.rows)]
        self.keys = keys
        self.rounds: dict[tuple[str, str], list[Sample | None]] = {}
        self.failures: list[str] = []

    def enter(self, step: Step, findings: Sequence[Finding]) -> None:
        for found in findings:
            self.rounds.setdefault((found.row, found.contender), []).append(found.sample)
        absent = set(step.figures) - {(found.row, found.contender) for found in findings}
        for row, contender in sorted(absent):
            self.failures.append(f"{row}, {contender}: not measured in this run")

    def fail(self, step: Step, error: BaseException) -> None:
        """A step that brought nothing: the rounds of others stay beside each other."""
        self.failures.append(f"{step.label}: {type(error).__name__}: {error}")
        for figure in step.figures:
            self.rounds.setdefault(figure, []).append(None)

    def rows(self, group: Group) -> list[Row]:
        return [row for row in group.rows if row.key in self.keys]

    def of(self, row: Row) -> dict[str, Rounds]:
        """The rounds of those who have a figure in a row, in its order."""
        found = {each.name: self.rounds.get((row.key, each.name), []) for each in row.contenders}
        return {name: rounds for name, rounds in found.items() if any(rounds)}

    def ratios(self, row: Row) -> dict[str, dict[str, float | None]]:
        """Of each of ours to each of theirs."""
        found = self.of(row)
        mine = [each.name for each in row.contenders if each.ours and each.name in found]
        theirs = [each.name for each in row.contenders if not each.ours and each.name in found]
        return {
            name: {other: figures.ratio(found[name], found[other], row.less_is_better) for other in theirs}
            for name in mine
        }


def table(board: Board) -> Iterator[str]:
    """Lines for people."""
    for group in board.groups:
        yield f"\n{group.title}"
        yield HEAD
        for row in board.rows(group):
            yield f"{row.title} ({row.unit}{', less is better' if row.less_is_better else ''})"
            yield from _lines(board, row)
    yield ""
    yield from LEGEND


def _lines(board: Board, row: Row) -> Iterator[str]:
    ratios = board.ratios(row)
    for name, rounds in board.of(row).items():
        against = [figures.short(others[name]) for others in ratios.values() if name in others]
        busy = figures.median(rounds, "load_busy")
        yield TABLE.format(
            f"  {name}",
            _number(figures.median(rounds)),
            figures.short(figures.spread(rounds)),
            _number(figures.median(rounds, "server_us"), 1),
            _number(figures.median(rounds, "p50"), 1e6),
            _number(figures.median(rounds, "p99"), 1e6),
            "" if busy is None else f"{busy:.0%}",
            _number(figures.median(rounds, "late_p99"), 1e6),
            ", ".join(against),
        ).rstrip()
    yield from (f"    {name} {note}" for name, note in row.notes.items() if name in board.of(row))


def _number(value: float | None, scale: float = 1) -> str:
    if value is None:
        return ""
    scaled = value * scale
    return f"{scaled:,.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"


def document(board: Board, effort: Effort, quick: bool, absent: Mapping[str, str], began: float) -> dict[str, Any]:
    """Everything, for programs."""
    everybody = [each for group in board.groups for row in board.rows(group) for each in row.contenders]
    names = {name for each in everybody if not each.ours for name in (each.needs, each.name) if name}
    return {
        "format": FORMAT,
        "date": datetime.datetime.fromtimestamp(began, datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "effort": effort._asdict(),
        "geartrain": machine.ours(),
        "peers": machine.versions(sorted(names)),
        "missing": dict(absent),
        "failures": board.failures,
        "rows": [_row(board, group, row) for group in board.groups for row in board.rows(group)],
    }


def _row(board: Board, group: Group, row: Row) -> dict[str, Any]:
    found = board.of(row)
    return {
        "row": row.key,
        "group": group.key,
        "group_title": group.title,
        "title": row.title,
        "what": row.what,
        "unit": row.unit,
        "less_is_better": row.less_is_better,
        "notes": dict(row.notes),
        "contenders": [
            {
                "name": each.name,
                "on": each.on,
                "ours": each.ours,
                "median": figures.median(found[each.name]),
                "rounds": [sample._asdict() if sample else None for sample in found[each.name]],
            }
            for each in row.contenders
            if each.name in found
        ],
        "geartrain_is_times_better": board.ratios(row),
    }


def caption(found: Mapping[str, Any]) -> str:
    """What stands below each picture."""
    if found["quick"]:
        return "A quick run: it shows that everything runs, its figures mean nothing."
    ours, host = found["geartrain"], found["machine"]
    return (
        f"Medians of {found['effort']['rounds']} rounds, all in one run on one machine with {host['cores']} cores; "
        f"Geartrain {ours.get('version')}, {ours.get('core')} core."
    )


def pictures(board: Board, caption: str) -> dict[str, str]:
    """An SVG for each group that has a figure, by file name."""
    drawn = {}
    for group in board.groups:
        panels = [panel for row in board.rows(group) if (panel := _panel(board, row)).bars]
        if panels:
            drawn[f"bench-{group.key}.svg"] = picture.draw(group.title, panels, caption)
    return drawn


def _panel(board: Board, row: Row) -> picture.Panel:
    found = board.of(row)
    reference = next((each.name for each in row.contenders if not each.ours and each.name in found), None)
    bars = []
    for each in row.contenders:
        value = figures.median(found.get(each.name, []))
        if value is None:
            continue
        times = figures.ratio(found[each.name], found[reference], False) if reference else None
        hint = f"{each.name}: {_number(value)} {row.unit}. {each.on}."
        label = f"{figures.short(times)} x" if times else ""
        bars.append(picture.Bar(each.name, times or value, label, hint, each.ours))
    less = ", less is better" if row.less_is_better else ""
    scale = f"{row.unit}; {reference} = 1" if reference else f"{_number(bars[0].value) if bars else ''} {row.unit}"
    return picture.Panel(f"{row.title} ({scale}{less})", tuple(bars))
