"""Everything side by side with the real servers, in one run: what `make bench` runs.

    python bench/run.py                                 all of it
    python bench/run.py --list                          what there is
    python bench/run.py --only durable --rounds 5       a group, a row, or rows with this word in them
    python bench/run.py --json found.json --svg docs/images

Everybody takes part in each round, in turns; what counts is the median, and the ratio of figures of the same round.
`--quick` only shows that everything runs: its figures mean nothing. Exit code 1: something could not be measured.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import catalogue, groups, machine, progress, report
from bench.groups import Effort, Group, Row, Turn
from tools import peers


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", action="append", default=[], help="may be given several times")
    parser.add_argument("--rounds", metavar="N", type=int, help=f"{groups.FULL.rounds}, or 1 if quick")
    parser.add_argument("--quick", action="store_true", help="see that everything runs, in a few minutes")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write everything that was found there")
    parser.add_argument("--svg", metavar="DIR", type=pathlib.Path, help="draw a picture for each group there")
    parser.add_argument("--list", action="store_true", help="say what is measured, on what, and measure nothing")
    asked = parser.parse_args(words)
    if asked.rounds is not None and asked.rounds < 1:
        parser.error("--rounds: at least 1")
    if not chosen(asked.only):
        parser.error(f"no row has {' or '.join(asked.only)} in it; --list shows them")
    return asked


def chosen(words: Sequence[str]) -> frozenset[str]:
    """The rows of these names or groups; for other words, those that have it in their text. All without words."""
    rows = [(group, row) for group in catalogue.GROUPS for row in group.rows]
    exact = {name for group, row in rows for name in (group.key, row.key)}
    return frozenset(
        row.key for group, row in rows if not words or any(_fits(word, group, row, exact) for word in words)
    )


def _fits(word: str, group: Group, row: Row, exact: set[str]) -> bool:
    if word in exact:
        return word in (group.key, row.key)
    text = " ".join([row.key, row.title, *(each.name for each in row.contenders)])
    return word.lower() in text.lower()


def listing(keys: frozenset[str]) -> str:
    lines = []
    for group in catalogue.GROUPS:
        for row in (row for row in group.rows if row.key in keys):
            lines += [f"{row.key}: {row.title} ({row.unit})", f"    {row.what}"]
            lines += [f"    - {each.name}: {each.on}" for each in row.contenders]
            lines += [f"    {name} {note}" for name, note in row.notes.items()]
    return "\n".join(lines)


def absent_peers(board: report.Board) -> dict[str, str]:
    """The peers that its rows need and this machine has not, and why."""
    rows = [row for group in board.groups for row in board.rows(group)]
    needed = {each.needs for row in rows for each in row.contenders if each.needs}
    found = {peer.name: peers.why_missing(peer) for peer in (*peers.PEERS, *peers.BENCH) if peer.name in needed}
    return {name: reason for name, reason in found.items() if reason}


def measure(board: report.Board, effort: Effort, absent: Mapping[str, str]) -> None:
    """Every round of every group."""
    turns = [
        (group, Turn(number, effort, board.keys, absent))
        for group in board.groups
        for number in range(1 if group.rounds_itself else effort.rounds)
    ]
    bar = progress.Progress(sum(group.count(turn) for group, turn in turns))
    for group, turn in turns:
        try:
            with contextlib.closing(group.steps(turn)) as steps:
                for step in steps:
                    bar.step(f"round {turn.number + 1}, {step.label}" if not group.rounds_itself else step.label)
                    _make(step, board, bar)
        except Exception as error:  # a server that did not end as it should; its figures are there
            board.failures.append(f"{group.title}: {type(error).__name__}: {error}")
            bar.say(board.failures[-1])
    bar.end()


def _make(step: groups.Step, board: report.Board, bar: progress.Progress) -> None:
    try:
        board.enter(step, list(step.measure()))
    except Exception as error:
        board.fail(step, error)
        bar.say(f"FAILED {board.failures[-1]}")
    bar.finish()


def warnings(board: report.Board, found: Mapping[str, Mapping[str, object]], quick: bool) -> list[str]:
    """What a reader of the table must not overlook."""
    said = [f"NOT MEASURED, the peer is missing: {name}: {reason}" for name, reason in found["missing"].items()]
    said += [f"FAILED: {failure}" for failure in board.failures]
    if found["machine"]["filesystem"] in machine.IN_MEMORY:
        said.append("The temporary folder is in memory: what is called durable here was not on a disk. Set TMPDIR.")
    if quick:
        said.append("A quick run: it shows that everything runs, its figures mean nothing.")
    return said


def main(words: Sequence[str] | None = None) -> int:
    asked = arguments(words)
    keys = chosen(asked.only)
    if asked.list:
        print(listing(keys))
        return 0
    effort = groups.QUICK if asked.quick else groups.FULL
    effort = effort._replace(rounds=asked.rounds or effort.rounds)
    board = report.Board(catalogue.GROUPS, keys)
    found = compare(board, effort, asked)
    return 1 if board.failures or found["missing"] else 0


def compare(board: report.Board, effort: Effort, asked: argparse.Namespace) -> dict[str, Any]:
    """Measure what is on the board, write the files that were asked for, and print the table."""
    absent = absent_peers(board)
    for name, reason in absent.items():
        print(
            f"THE PEER {name.upper()} IS MISSING, and what it would be compared with stands alone: {reason}",
            file=sys.stderr,
        )
    began, host = time.time(), machine.facts()
    measure(board, effort, absent)
    found = report.document(board, effort, asked.quick, absent, began)
    found["machine"] = host
    _write(asked, board, found)
    print("\n".join(report.table(board)))
    print(f"\n{_subject(found)}")
    for warning in warnings(board, found, asked.quick):
        print(warning)
    return found


def _subject(found: Mapping[str, Mapping[str, object]]) -> str:
    """On what, in a line or two."""
    ours, host = found["geartrain"], found["machine"]
    peers_seen = ", ".join(f"{name} {version}" for name, version in found["peers"].items())
    return (
        f"Geartrain {ours.get('version')} ({ours.get('core')} core, {ours.get('loop')}, Python {ours.get('python')}) "
        f"beside {peers_seen or 'nobody'}.\n{found['effort']['rounds']} round(s) on {host['cores']} cores"
        f"{' (server and load on one each)' if host['pinned'] else ''}, {host['processor']}, Linux {host['kernel']}, "
        f"{host['filesystem']}, {host['fsync_us']} us for an fsync, load average {host['load_average']} at the start."
    )


def _write(asked: argparse.Namespace, board: report.Board, found: Mapping[str, object]) -> None:
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    if asked.svg:
        asked.svg.mkdir(parents=True, exist_ok=True)
        for name, drawing in report.pictures(board, report.caption(found)).items():
            (asked.svg / name).write_text(drawing)


if __name__ == "__main__":
    sys.exit(main())
