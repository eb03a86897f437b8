"""The page with all figures of a run, for the documentation, from what `bench/run.py --json` wrote.

    make bench ARGS="--json found.json --svg docs/images"
    python -m bench.page found.json > docs/performance-figures.md

It has ratios only: absolute figures say more about the machine than about the programs.
"""

import itertools
import json
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench import figures
from bench.figures import Rounds, Sample

_HEAD = (
    "# Performance: all figures",
    "",
    "Written by `python -m bench.page` from one run of `make bench`; [performance](performance.md) says what they",
    "mean. A figure is the factor by which Geartrain is ahead of the one at the top of its column: the median of what",
    "each round says, with the lowest and the highest in brackets. Above 1, Geartrain is faster, or takes less.",
)


def page(found: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the page."""
    yield from _HEAD
    yield ""
    yield from _about(found)
    for _, rows in itertools.groupby(found["rows"], lambda row: row["group"]):
        yield from _table(list(rows))


def _about(found: Mapping[str, Any]) -> Iterator[str]:
    ours, host = found["geartrain"], found["machine"]
    peers = ", ".join(f"{name} {version}" for name, version in found["peers"].items())
    yield f"Geartrain {ours['version']} ({ours['core']} core, Python {ours['python']}) beside {peers}."
    yield (
        f"{found['effort']['rounds']} rounds on {host['cores']} cores ({host['processor']}), with a load average of "
        f"{host['load_average']} at the start."
    )
    for name, reason in found["missing"].items():
        yield f"Not measured: {name} ({reason})."
    for failure in found["failures"]:
        yield f"Failed: {failure}."


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of a group; one line for each of ours, if it takes part more than once."""
    theirs = list(dict.fromkeys(each["name"] for row in rows for each in row["contenders"] if not each["ours"]))
    if not theirs:
        return
    yield ""
    yield f"## {rows[0]['group_title']}"
    yield ""
    yield f"| | {' | '.join(theirs)} |"
    yield f"|---{'|---' * len(theirs)}|"
    for row in rows:
        ours = [each for each in row["contenders"] if each["ours"]]
        by_name = {each["name"]: each for each in row["contenders"] if not each["ours"]}
        for each in ours:
            cells = [_cell(each, by_name.get(name), row["less_is_better"]) for name in theirs]
            title = row["title"] if len(ours) == 1 else f"{row['title']}: {each['name']}"
            yield f"| {title} | {' | '.join(cells)} |"


def _cell(ours: Mapping[str, Any], theirs: Mapping[str, Any] | None, less_is_better: bool) -> str:
    if theirs is None:
        return ""
    ratios = sorted(figures.ratios(_rounds(ours), _rounds(theirs), less_is_better))
    if not ratios:
        return "-"
    middle = figures.ratio(_rounds(ours), _rounds(theirs), less_is_better)
    return f"{figures.short(middle)} ({figures.short(ratios[0])} to {figures.short(ratios[-1])})"


def _rounds(contender: Mapping[str, Any]) -> Rounds:
    return [None if sample is None else Sample(**sample) for sample in contender["rounds"]]


if __name__ == "__main__":
    print("\n".join(page(json.loads(pathlib.Path(sys.argv[1]).read_text()))))
