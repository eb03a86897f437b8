"""Queues of other people that keep their jobs in PostgreSQL: what each does alone on an empty database.

Each is used as its documentation says is quickest (`bench/postgres_peers`), with one process that submits and one that
works. Where that depends on a setting, several are tried and the best counts.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench import environments
from bench.figures import Sample
from bench.groups import Effort
from bench.postgres_cost import Meter
from tests.support import postgres

PEERS = Path(__file__).parent / "postgres_peers"
EXTRA = "bench-postgresql"
BATCH = 1000
STARTS = 100  # submits to an idle worker, one after the other
LIMIT = 120  # seconds for one measurement


class Queue(NamedTuple):
    """One of those that are measured."""

    name: str
    setting: str  # what is varied, for the reader
    settings: tuple[int, ...]
    finishes: int  # about how many jobs it finishes in a second, at least


QUEUES = (
    Queue("pgqueuer", "batch_size", (10, 100, 1000), 2500),
    Queue("procrastinate", "concurrency", (1, 10, 50), 150),
)


class QueueError(Exception):
    """A queue could not be measured; the others can."""


class Told(NamedTuple):
    """One measurement of a script."""

    jobs: int
    seconds: float
    postgres_us: float  # of PostgreSQL's processors for each job

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


def measure(queue: Queue, cluster: postgres.Cluster, effort: Effort) -> Mapping[str, Sample]:
    """A figure for each kind of measurement."""
    one = _run(queue, cluster, "submit", effort.seconds, 1)
    bulk = _run(queue, cluster, "submit", effort.seconds, BATCH)
    jobs = int(queue.finishes * effort.seconds)
    finish = max((_run(queue, cluster, "finish", jobs, setting) for setting in queue.settings), key=_rate)
    start = _run(queue, cluster, "start", min(STARTS, effort.first))
    return {
        "submit-1": Sample(one.rate),
        "submit": Sample(bulk.rate),
        "finish": Sample(finish.rate),
        "postgres": Sample(bulk.postgres_us + finish.postgres_us),
        "start": Sample(start.seconds * 1e3),
    }


def _rate(told: Told) -> float:
    return told.rate


def _run(queue: Queue, cluster: postgres.Cluster, measurement: str, *arguments: float) -> Told:
    python = environments.python_with(queue.name, _requirements(queue))
    with postgres.fresh_database(cluster) as database:
        words = [str(PEERS / f"peer_{queue.name}.py"), measurement, cluster.url(database), *map(str, arguments)]
        with subprocess.Popen(
            [str(python), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as script:
            try:
                return _talk(script, Meter(cluster))
            except (ValueError, OSError, subprocess.TimeoutExpired) as error:
                script.kill()
                _, said = script.communicate()
                raise QueueError(f"{queue.name}, {measurement}: {error}\n{said}") from None


def _talk(script: "subprocess.Popen[str]", meter: Meter) -> Told:
    assert script.stdout is not None
    if script.stdout.readline() != "ready\n":
        raise ValueError("it did not get ready")
    meter.begin()
    answer, _ = script.communicate("\n", LIMIT)
    told = json.loads(answer)
    return Told(told["count"], told["seconds"], meter.end(told["count"]))


def _requirements(queue: Queue) -> list[str]:
    others = {other.name for other in QUEUES if other is not queue}
    return [line for line in environments.extra(EXTRA) if line.partition(">=")[0] not in others]
