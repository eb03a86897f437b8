"""Many connections at once: the memory they take and the rate that is left, beside gearmand, in one run.

python bench/connections.py [--idle 5000] [--workers 1000] [--rounds 3] [--json]
"""

import argparse
import contextlib
import json
import pathlib
import resource
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import contenders, crowd, load
from bench.contenders import Contender
from bench.figures import Sample
from bench.groups import Finding, Group, Row, Step, Steps, Turn, present, rotated

FUNCTION = b"echo"
WARM_UP = 200  # jobs, so that what is made once is not counted to the connections
JOBS = 10_000


def resident(pid: int) -> int:
    """KiB of memory that a process has."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def allow_many() -> None:
    """As many open files as this user may have; the servers inherit that."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def rate(port: int, workers: int, jobs: int) -> float:
    """Of 8 clients with 8 jobs each in flight."""
    crowded = load.Load(port, FUNCTION, 8, 8, workers)
    try:
        return crowded.run(jobs)
    finally:
        crowded.close()


def measure(start: contenders.Start, idle: int, workers: int, jobs: int) -> dict[str, float]:
    """One server: its memory at each stage, and its rate with everybody connected."""
    with contenders.running(start) as server, contextlib.ExitStack() as stack:
        rate(server.port, 1, WARM_UP)
        found: dict[str, float] = {"empty_kib": resident(server.pid)}
        for _ in range(idle):
            stack.enter_context(crowd.connect(server.port))
        rate(server.port, 1, 1)  # by now every one of them is accepted
        found["idle_bytes_each"] = (resident(server.pid) - found["empty_kib"]) * 1024 / max(idle, 1)
        before = resident(server.pid)
        everybody = load.Load(server.port, FUNCTION, 8, 8, workers)
        found["worker_bytes_each"] = (resident(server.pid) - before) * 1024 / max(workers, 1)
        found["jobs_per_second"] = everybody.run(jobs)
        found["full_kib"] = resident(server.pid)
        everybody.close()
        found["jobs_per_second_8_workers"] = rate(server.port, 8, jobs)
    return found


class Connections(Group):
    """One measurement of each server brings all rows."""

    def steps(self, turn: Turn) -> Steps:
        rows = [row for row in self.rows if row.key in turn.keys]
        allow_many()
        with contenders.own_core():
            for contender in rotated(present(rows[0], turn), turn.number) if rows else []:
                yield self._step(rows, contender, turn)

    def count(self, turn: Turn) -> int:
        rows = [row for row in self.rows if row.key in turn.keys]
        return len(present(rows[0], turn)) if rows else 0

    def _step(self, rows: list[Row], contender: Contender, turn: Turn) -> Step:
        effort = turn.effort

        def measured() -> list[Finding]:
            assert contender.start is not None
            jobs = JOBS if effort.idle > 1000 else JOBS // 20
            found = measure(contender.start, effort.idle, effort.sleepers, jobs)
            # A process can have room left from before: then more connections took none.
            return [Finding(row.key, contender.name, Sample(max(found[FIGURES[row.key]], 1))) for row in rows]

        return Step(f"many connections: {contender.name}", tuple((row.key, contender.name) for row in rows), measured)


FIGURES = {
    "connections-idle": "idle_bytes_each",
    "connections-workers": "worker_bytes_each",
    "connections-process": "full_kib",
    "connections-crowd": "jobs_per_second",
    "connections-idlers": "jobs_per_second_8_workers",
}


def group(*taking_part: Contender) -> Connections:
    """The rows of the front."""
    crowded = "with 5,000 idle connections and 1,000 sleeping workers (200 and 50 in a quick run)"
    return Connections(
        "connections",
        "Many connections",
        [
            Row(
                "connections-idle",
                "memory for each idle connection",
                "What the process grows by for each of 5,000 connections that say nothing (200 in a quick run).",
                "bytes",
                taking_part,
                less_is_better=True,
            ),
            Row(
                "connections-workers",
                "memory for each sleeping worker",
                "What it grows by for each of 1,000 workers that offer one function and sleep (50 in a quick run).",
                "bytes",
                taking_part,
                less_is_better=True,
            ),
            Row(
                "connections-process",
                "memory of the whole process",
                f"Resident memory {crowded}.",
                "KiB",
                taking_part,
                less_is_better=True,
            ),
            Row(
                "connections-crowd",
                "round trips with all workers asleep",
                f"Foreground jobs of 8 clients with 8 under way each, {crowded}: each job has to wake one.",
                "jobs/s",
                taking_part,
            ),
            Row(
                "connections-idlers",
                "round trips beside idle connections",
                "The same with 8 workers and the idle connections beside them.",
                "jobs/s",
                taking_part,
            ),
        ],
    )


SERVERS: dict[str, contenders.Start] = {
    "geartrain": contenders.geartrain("gearman", durable=False),
    "gearmand": contenders.gearmand(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    allow_many()
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in SERVERS}
    for number in range(args.rounds):
        for name in rotated(list(SERVERS), number):
            print(f"round {number + 1} of {args.rounds}: {name}", file=sys.stderr)
            rounds[name].append(measure(SERVERS[name], args.idle, args.workers, args.jobs))
    table = {
        name: {row: statistics.median(found[row] for found in results) for row in results[0]}
        for name, results in rounds.items()
    }
    if args.json:
        print(json.dumps(table))
        return
    print(f"{args.idle} idle connections and {args.workers} sleeping workers; medians of {args.rounds} rounds")
    print(f"{'':28} {'geartrain':>12} {'gearmand':>12} {'ratio':>7}")
    for row, mine in table["geartrain"].items():
        theirs = table["gearmand"][row]
        print(f"{row:28} {mine:12.0f} {theirs:12.0f} {mine / theirs:7.2f}")


if __name__ == "__main__":
    main()
