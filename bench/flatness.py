"""What `engine_cost.py` finds, as rows: it has rounds of its own, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench.contenders import Contender
from bench.figures import Sample
from bench.groups import Finding, Group, Row, Step, Steps, Turn

SCRIPT = Path(__file__).with_name("engine_cost.py")
LONGEST = 600  # seconds
TAIL = 2000  # characters of what it said before it failed


class Flat(NamedTuple):
    """A line of `engine_cost.py` that is a row here."""

    key: str
    scenario: str
    verb: str
    little: str
    much: str


MANY_JOBS = ("jobs queued: 1,000, 1,000,000", "1 thousand queued", "1 million queued")
FLAT = (
    *(Flat(f"engine-{verb}", MANY_JOBS[0], verb, *MANY_JOBS[1:]) for verb in ("submit", "claim", "complete")),
    Flat("engine-cancel", "the same, cancelling", "cancel", *MANY_JOBS[1:]),
    Flat(
        "engine-functions",
        "functions: 1,000, 10,000; offers all",
        "whole job",
        "1 thousand functions",
        "10 thousand functions",
    ),
    Flat("engine-workers", "workers: 1,000, 10,000; asleep", "whole job", "1 thousand workers", "10 thousand workers"),
    Flat(
        "engine-crews",
        "workers: 1,000, 10,000; asleep (own functions)",
        "whole job",
        "1 thousand workers, no two alike",
        "10 thousand workers, no two alike",
    ),
)
BYTES = "engine-bytes"
ENGINE = "the engine alone, without a server"
LITTLE_AND_MUCH = (
    "Processor time of one call with much in the engine, beside one with little: 1 means that it costs the same."
)


class Flatness(Group):
    """Whether a verb costs the same with little and with much; nobody else's engine can be asked that."""

    rounds_itself = True

    def __init__(self) -> None:
        rows = [
            Row(
                flat.key,
                f"engine: {flat.verb}, {flat.much}",
                LITTLE_AND_MUCH,
                "us",
                (Contender(flat.much, ENGINE, ours=True), Contender(flat.little, ENGINE)),
                less_is_better=True,
            )
            for flat in FLAT
        ]
        queued = Contender("1 million queued", ENGINE, ours=True)
        what = "What a process grows by for each queued background job with a payload of 64 bytes."
        rows.append(Row(BYTES, "engine: memory for each queued job", what, "bytes", (queued,), less_is_better=True))
        super().__init__("engine", "What a call costs as the queue grows", rows)

    def steps(self, turn: Turn) -> Steps:
        rows = [row for row in self.rows if row.key in turn.keys]
        figures = tuple((row.key, contender.name) for row in rows for contender in row.contenders)
        if rows:
            yield Step(self.title, figures, lambda: [each for each in found(turn) if each.row in turn.keys])

    def count(self, turn: Turn) -> int:
        return int(any(row.key in turn.keys for row in self.rows))


def found(turn: Turn) -> list[Finding]:
    """Run it, and read what it found; a line that it had no time for is not there."""
    told = json.loads(run("--json", "--rounds", str(turn.effort.engine_rounds)))
    costs = {(cost["scenario"], cost["verb"]): cost for cost in told["costs"]}
    findings = []
    for flat in FLAT:
        if cost := costs.get((flat.scenario, flat.verb)):
            findings.append(Finding(flat.key, flat.much, Sample(cost["large"])))
            findings.append(Finding(flat.key, flat.little, Sample(cost["small"])))
    return [*findings, Finding(BYTES, "1 million queued", Sample(told["bytes_per_job"]["1,000,000 jobs"]))]


def run(*options: str) -> str:
    """What the script prints; what it says meanwhile is shown only if it fails."""
    command = [sys.executable, str(SCRIPT), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{SCRIPT.name} took more than {LONGEST} seconds") from None
    if done.returncode:
        raise RuntimeError(f"{SCRIPT.name} failed\n{done.stdout[-TAIL:]}{done.stderr[-TAIL:]}")
    return done.stdout
