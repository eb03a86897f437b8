"""What is expected of servers that share a PostgreSQL, compared with the ratios of a run.

    python bench/run.py --only cluster --json found.json
    python bench/cluster_bars.py found.json

A ratio compares figures of the same round, and the median over the rounds counts: a busy machine slows down both. Exit
code 1: a bar was missed, or there is no figure for it.
"""

import json
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

ONE, TWO, SQLITE, ALONE = "Geartrain, PostgreSQL", "Geartrain, 2 servers", "Geartrain, SQLite", "Geartrain, 1 server"
ELSEWHERE = "Geartrain, workers elsewhere"
LINE = "{:52} {:22} {:>9} {:>9}  {}"


class Bar(NamedTuple):
    """How many times better one of ours has to be than another, at least."""

    row: str
    ours: str
    other: str
    least: float


BARS = (
    Bar("cluster-submit", ONE, "pgqueuer", 1.5),
    Bar("cluster-submit", ONE, "procrastinate", 4),
    Bar("cluster-finish", ONE, "pgqueuer", 3),
    Bar("cluster-finish", ONE, "procrastinate", 50),
    Bar("cluster-postgres", ONE, "pgqueuer", 1 / 0.3),
    Bar("cluster-run", ONE, SQLITE, 0.75),
    Bar("cluster-submit", ONE, SQLITE, 0.4),
    Bar("cluster-submit-1", ONE, SQLITE, 0.4),
    Bar("cluster-foreground", ONE, SQLITE, 0.95),
    Bar("cluster-start", ONE, "pgqueuer", 4),
    Bar("cluster-start", ELSEWHERE, "pgqueuer", 4),
    Bar("cluster-elsewhere", ELSEWHERE, ALONE, 0.7),
    Bar("cluster-elsewhere-cpu", ELSEWHERE, ALONE, 1),
    Bar("cluster-two", TWO, ALONE, 1.3),
    Bar("cluster-two-cpu", TWO, ALONE, 1 / 1.15),
)


def ratio(found: Mapping[str, Any], bar: Bar) -> float | None:
    """What a run says; None where it has no figure."""
    for row in found["rows"]:
        if row["row"] == bar.row:
            value: float | None = row["geartrain_is_times_better"].get(bar.ours, {}).get(bar.other)
            return value
    return None


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    titles = {row["row"]: row["title"] for row in found["rows"]}
    yield LINE.format("", "beside", "at least", "found", "")
    for bar in BARS:
        value = ratio(found, bar)
        verdict = "not measured" if value is None else "" if value >= bar.least else "MISSED"
        shown = "-" if value is None else f"{value:.2f}"
        yield LINE.format(titles.get(bar.row, bar.row)[:52], bar.other, f"{bar.least:.2f}", shown, verdict).rstrip()


def main(words: Sequence[str]) -> int:
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    found = json.loads(pathlib.Path(words[0]).read_text())
    print("\n".join(lines(found)))
    return 0 if all((ratio(found, bar) or 0.0) >= bar.least for bar in BARS) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
