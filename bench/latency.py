"""How long single jobs take at a load that does not wait for the server: p50, p99 and p99.9, beside other servers.

    python bench/latency.py [--rounds 5] [--quick] [--json found.json] [--svg docs/images]

Jobs arrive at times of their own, with 30, 60 and 90 % of a rate that is measured first, in the same round: of
foreground jobs, what gearmand can take; of jobs on disk, what the slowest of the servers can. All servers get the same
arrivals, in turns. A job's time begins when it is due, so a server that stalls is charged with everybody who would have
come meanwhile. The load is bench/latency_load.c. How late it was itself stands beside its figures: where that is not
small against them, the machine was too busy. The options are those of bench/run.py, which runs these groups too.
"""

import contextlib
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import contenders, gearman_load
from bench.contenders import Contender, Place
from bench.figures import Sample
from bench.groups import MOST_JOBS, Effort, Finding, Group, Row, Step, Steps, Turn, present, rotated, started

SOURCE = Path(__file__).parent / "latency_load.c"
SHARES = (30, 60, 90)  # percent of the rate that was measured first
PERCENTILES = {"p50": "median", "p99": "99th percentile", "p999": "99.9th percentile"}
LONGER = 2.5  # than what the other figures take: a thousandth of the jobs has to be more than a few
CONNECTIONS, WINDOW, WORKERS = 8, 16, 8
FOREGROUND, DURABLE = "latency", "durable-latency"  # the groups


class Entry(NamedTuple):
    """One who takes part, and what the load does with it."""

    contender: Contender
    work: str  # of latency_load.c


class LatencyGroup(Group):
    """Servers under the same arrivals, one after the other. A run brings all three percentiles."""

    def __init__(self, key: str, title: str, what: str, entries: Sequence[Entry], reference: str = "") -> None:
        self._works = {entry.contender.name: entry.work for entry in entries}
        self._reference = reference  # whose rate it is; without it, or where it is absent, of the slowest
        taking_part = tuple(entry.contender for entry in entries)
        rate = Row(
            f"{key}-rate",
            f"{title}: what the server can take",
            f"{what}, {CONNECTIONS} clients with {WINDOW} under way each. The rows below have a share of it.",
            "jobs/s",
            taking_part,
        )
        rows = [_row(key, title, what, share, name, taking_part) for share in SHARES for name in PERCENTILES]
        super().__init__(key, f"{title}, at a load that does not wait", [rate, *rows])

    def steps(self, turn: Turn) -> Steps:
        taking_part = self._present(turn)
        rates: dict[str, float] = {}
        with contenders.own_core(), contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="geartrain-bench-"))
            program = gearman_load.compile_into(Path(folder), SOURCE)
            places = {contender.name: started(contender, stack) for contender in taking_part}
            for contender in rotated(taking_part, turn.number):
                measure = functools.partial(self._rate, program, places[contender.name], contender, turn.effort, rates)
                yield self._step(contender, self.rows[:1], "what it can take", turn, measure)
            for number, share in enumerate(SHARES):
                rows = self.rows[1 + number * len(PERCENTILES) :][: len(PERCENTILES)]
                for contender in rotated(taking_part, turn.number):
                    place = places[contender.name]
                    measure = functools.partial(self._share, program, place, contender, turn.effort, rates, share, rows)
                    yield self._step(contender, rows, f"at {share} %", turn, measure)

    def count(self, turn: Turn) -> int:
        return len(self._present(turn)) * (1 + len(SHARES))

    def _present(self, turn: Turn) -> tuple[Contender, ...]:
        return present(self.rows[0], turn)

    def _step(self, contender: Contender, rows: Sequence[Row], label: str, turn: Turn, measure: Any) -> Step:
        wanted = tuple((row.key, contender.name) for row in rows if row.key in turn.keys)

        def measured() -> Iterable[Finding]:
            return [finding for finding in measure() if finding.row in turn.keys]

        return Step(f"{self.title}, {label}: {contender.name}", wanted, measured)

    def _rate(
        self, program: Path, place: Place | Exception, contender: Contender, effort: Effort, rates: dict[str, float]
    ) -> list[Finding]:
        """With a closed load: there is always a next job."""
        jobs = effort.first
        for share in (0.1, 1.0):  # a few jobs say little of the rate of many: guess twice
            sample, result = self._run(program, place, contender, 0, jobs)
            jobs = min(max(int(result["rate"] * effort.seconds * share), effort.first), MOST_JOBS)
        sample, result = self._run(program, place, contender, 0, jobs)
        rates[contender.name] = result["rate"]
        return [Finding(self.rows[0].key, contender.name, sample._replace(value=result["rate"]))]

    def _share(
        self,
        program: Path,
        place: Place | Exception,
        contender: Contender,
        effort: Effort,
        rates: dict[str, float],
        share: int,
        rows: Sequence[Row],
    ) -> list[Finding]:
        """With an open load, at a share of the rate."""
        if not rates:
            raise RuntimeError("nobody's rate could be measured, so there is none to take a share of")
        rate = max(int(rates.get(self._reference, min(rates.values())) * share / 100), 1)
        jobs = min(max(int(rate * effort.seconds * LONGER), effort.first), MOST_JOBS)
        sample, result = self._run(program, place, contender, rate, jobs)
        return [
            Finding(row.key, contender.name, sample._replace(value=result[name] * 1e6))
            for row, name in zip(rows, PERCENTILES, strict=True)
        ]

    def _run(
        self, program: Path, place: Place | Exception, contender: Contender, rate: int, jobs: int
    ) -> tuple[Sample, dict[str, float]]:
        if isinstance(place, Exception):
            raise place
        before = contenders.processor_seconds(place.pid)
        result = run(program, place.port, self._works[contender.name], rate, jobs)
        used = contenders.processor_seconds(place.pid) - before
        is_open = rate > 0
        sample = Sample(
            value=0.0,
            server_us=used / jobs * 1e6,
            p50=result["p50"] if is_open else None,  # of a closed load they say how long its own queue is
            p99=result["p99"] if is_open else None,
            load_busy=result["busy"],
            late_p99=result["late_p99"] if is_open else None,
        )
        return sample, result


def run(program: Path, port: int, work: str, rate: int, jobs: int) -> dict[str, float]:
    """What the load prints; with rate 0 it is closed. It runs on the cores of this process."""
    workers = WORKERS if work == "foreground" else 0
    shape = map(str, (port, work, rate, jobs, CONNECTIONS, WINDOW, workers))
    done = subprocess.run(
        [str(program), *shape], capture_output=True, text=True, timeout=gearman_load.RUN_SECONDS, check=False
    )
    if done.returncode:
        raise gearman_load.LoadError(done.stderr.strip() or f"exit code {done.returncode}")
    return dict(json.loads(done.stdout))


def _row(key: str, title: str, what: str, share: int, name: str, taking_part: tuple[Contender, ...]) -> Row:
    words = PERCENTILES[name]
    return Row(
        f"{key}-{share}-{name}",
        f"{title} at {share} % of the rate, {words}",
        f"{what}: the {words} of their times, each from when the job is due. They arrive as those of independent users "
        f"do, with {share} % of the rate that was measured first.",
        "us",
        taking_part,
        less_is_better=True,
    )


def groups(foreground: Sequence[Contender], on_disk: Sequence[Entry]) -> tuple[LatencyGroup, LatencyGroup]:
    """Foreground jobs, the last contender being the one whose rate counts; and submits that have to be on disk."""
    return (
        LatencyGroup(
            FOREGROUND,
            "foreground jobs",
            "Foreground jobs with 64 bytes, from the submission until the client has the result, with 8 workers",
            [Entry(contender, "foreground") for contender in foreground],
            foreground[-1].name,
        ),
        LatencyGroup(
            DURABLE,
            "jobs on disk",
            "Background jobs with 64 bytes, from the submission until they are acknowledged as being on disk",
            on_disk,
        ),
    )


def main(words: Sequence[str]) -> int:
    from bench import run

    return run.main(["--only", FOREGROUND, "--only", DURABLE, *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
