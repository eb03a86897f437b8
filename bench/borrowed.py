"""Measurements that are scripts with rounds of their own: the front runs them and reads what they found."""

import json
import subprocess
import sys
import tempfile
from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

from bench import queues
from bench.contenders import Contender
from bench.figures import Sample
from bench.groups import Effort, Finding, Group, Row, Step, Steps, Turn

HERE = Path(__file__).parent
LONGEST = 1800  # seconds
TAIL = 2000  # characters of what a script said before it failed


class Script(Group):
    """One step, which is the whole script."""

    rounds_itself = True

    def steps(self, turn: Turn) -> Steps:
        rows = [row for row in self.rows if row.key in turn.keys]
        figures = tuple((row.key, contender.name) for row in rows for contender in row.contenders)
        if rows:
            yield Step(self.title, figures, lambda: [each for each in self.found(turn) if each.row in turn.keys])

    def count(self, turn: Turn) -> int:
        return int(any(row.key in turn.keys for row in self.rows))

    @abstractmethod
    def found(self, turn: Turn) -> list[Finding]:
        """Run it, and read what it found."""


def run(script: str, *options: str) -> str:
    """What a script of this folder prints; what it says meanwhile is shown only if it fails."""
    command = [sys.executable, str(HERE / script), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{script} took more than {LONGEST} seconds") from None
    if done.returncode:
        raise RuntimeError(f"{script} failed\n{done.stdout[-TAIL:]}{done.stderr[-TAIL:]}")
    return done.stdout


class Flat(NamedTuple):
    """A line of `engine_cost.py` that is a row here."""

    key: str
    scenario: str
    verb: str
    little: str
    much: str


MANY_JOBS = ("jobs queued: 1 thousand, 1 million", "1 thousand queued", "1 million queued")
FLAT = (
    *(Flat(f"engine-{verb}", MANY_JOBS[0], verb, *MANY_JOBS[1:]) for verb in ("submit", "claim", "complete")),
    Flat("engine-cancel", "the same, cancelling", "cancel", *MANY_JOBS[1:]),
    Flat(
        "engine-functions", "functions: 1, 10 thousand; offers all", "whole job", "1 function", "10 thousand functions"
    ),
    Flat("engine-workers", "workers: 10, 10 thousand; asleep", "whole job", "10 workers", "10 thousand workers"),
)
BYTES = "engine-bytes"
ENGINE = "the engine alone, without a server"
LITTLE_AND_MUCH = (
    "Processor time of one call with much in the engine, beside one with little: 1 means that it costs the same."
)


class EngineCost(Script):
    """Whether a verb costs the same with little and with much; nobody else's engine can be asked that."""

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

    def found(self, turn: Turn) -> list[Finding]:
        told = json.loads(run("engine_cost.py", "--json", "--rounds", str(turn.effort.engine_rounds)))
        costs = {(cost["scenario"], cost["verb"]): cost for cost in told["costs"]}
        findings = []
        for flat in FLAT:
            if cost := costs.get((flat.scenario, flat.verb)):
                findings.append(Finding(flat.key, flat.much, Sample(cost["large"])))
                findings.append(Finding(flat.key, flat.little, Sample(cost["small"])))
        return [*findings, Finding(BYTES, "1 million queued", Sample(told["bytes_per_job"]["1,000,000 jobs"]))]


class PythonQueues(Script):
    """The Python task queues beside ours."""

    figures = {"queues-submit": "submitted", "queues-work": "finished"}

    def __init__(self) -> None:
        taking_part = tuple(_queue(queue) for queue in reversed(queues.QUEUES))  # ours is the last one there
        super().__init__(
            "queues",
            "Beside the Python task queues",
            [
                Row(
                    "queues-submit",
                    "empty tasks submitted",
                    "Empty tasks by one process, each library used in the quickest way that its documentation shows; "
                    "on disk for Geartrain, in Redis' memory for the others.",
                    "tasks/s",
                    taking_part,
                ),
                Row(
                    "queues-work",
                    "empty tasks finished by one worker process",
                    "The queue that was filled so is emptied by one worker process, started as its documentation says.",
                    "tasks/s",
                    taking_part,
                ),
            ],
        )

    def found(self, turn: Turn) -> list[Finding]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "queues.json"
            run(
                "queues.py", "--rounds", str(turn.effort.rounds), "--seconds", seconds(turn.effort), "--json", str(file)
            )
            told: dict[str, list[dict[str, Any]]] = json.loads(file.read_text())
        return [
            Finding(row, name, Sample(each[field]))
            for row, field in self.figures.items()
            for name, rounds in told.items()
            for each in rounds
        ]


def seconds(effort: Effort) -> str:
    """How long each queue is submitted to: a worker needs some time to empty it for a figure to be had."""
    return str(max(effort.seconds * 1.5, 1.0))


def _queue(queue: queues.Queue) -> Contender:
    if queue.keys:
        return Contender(queue.name, "redis-server, in memory")
    return Contender(queue.name, "geartrain serve --store sqlite", ours=True)
