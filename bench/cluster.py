"""Servers of ours that share a PostgreSQL, beside SQLite and beside queues of other people on the same PostgreSQL.

A group of `bench/run.py`: `python bench/run.py --only cluster`. Everybody has an empty database or schema of one
PostgreSQL with its default settings: a commit is on disk. Servers, PostgreSQL and load share all cores, as they are;
`bench/cluster_bars.py` compares the ratios of a run with what is expected of us.
"""

import concurrent.futures
import contextlib
import functools
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import gearman_load, postgres_queues, starts
from bench.contenders import Contender, Place
from bench.figures import Sample
from bench.gearman_load import Work
from bench.groups import MOST_JOBS, Effort, Finding, Group, Row, Step, Steps, Turn, present, rotated
from bench.postgres_cost import Meter
from tests.support import postgres, serving
from tests.support.postgres_programs import NEWEST, PEERS

NEEDED = PEERS[NEWEST]
PAYLOAD = 64
RATE = "jobs/s"

ONE = Contender("Geartrain, PostgreSQL", "geartrain serve --store postgresql", needs=NEEDED, ours=True)
TWO = Contender(
    "Geartrain, 2 servers", "two servers with one PostgreSQL, each with half of the load", None, NEEDED, True
)
ELSEWHERE = Contender(
    "Geartrain, workers elsewhere",
    "two servers with one PostgreSQL, all clients at one, all workers at the other",
    None,
    NEEDED,
    True,
)
SQLITE = Contender("Geartrain, SQLite", "geartrain serve --store sqlite")
ALONE = Contender("Geartrain, 1 server", "the same with one server", needs=NEEDED)
THEIRS = {
    queue.name: Contender(
        queue.name, f"the best {queue.setting} of {', '.join(map(str, queue.settings))}", needs=NEEDED
    )
    for queue in postgres_queues.QUEUES
}

ROWS = (
    Row(
        "cluster-submit",
        "background submits in bulk",
        "Background jobs with 64 bytes until they are committed, with no worker; ours by 4 clients with 64 under way "
        "each, theirs in batches of 1,000.",
        RATE,
        (ONE, SQLITE, *THEIRS.values()),
    ),
    Row(
        "cluster-submit-1",
        "background submits, one client that waits for each",
        "Background jobs with 64 bytes until they are committed, one after the other.",
        RATE,
        (ONE, SQLITE, *THEIRS.values()),
    ),
    Row(
        "cluster-finish",
        "finish a full queue",
        "A queue of background jobs with 64 bytes is finished; ours by 8 workers in one process over TCP, theirs by "
        "one worker process with its best setting.",
        RATE,
        (ONE, SQLITE, *THEIRS.values()),
    ),
    Row(
        "cluster-run",
        "submit and run",
        "Background jobs with 64 bytes, submitted by 4 clients with 64 under way each while 8 workers run them.",
        RATE,
        (ONE, SQLITE),
    ),
    Row(
        "cluster-two",
        "submit and run, two servers beside one",
        "The same load for each of two servers with clients and workers of its own, and for one server alone.",
        RATE,
        (TWO, ALONE),
    ),
    Row(
        "cluster-two-cpu",
        "processor time of servers and PostgreSQL for a job, two servers beside one",
        "Of the run above: what all servers and PostgreSQL used, over the jobs.",
        "us",
        (TWO, ALONE),
        less_is_better=True,
    ),
    Row(
        "cluster-elsewhere",
        "submit and run, all workers at another server",
        "Background jobs with 64 bytes, submitted to one server by 4 clients with 64 under way each while 8 workers "
        "run them that are connected to another one.",
        RATE,
        (ELSEWHERE, ALONE),
    ),
    Row(
        "cluster-elsewhere-cpu",
        "processor time of the home for a job, all workers at another server",
        "Of the run above: what the server used that the clients are connected to, over the jobs.",
        "us",
        (ELSEWHERE, ALONE),
        less_is_better=True,
    ),
    Row(
        "cluster-elsewhere-foreground",
        "foreground jobs, 8 clients, 8 workers at another server",
        "Foreground jobs with 64 bytes, until the client has the result.",
        RATE,
        (ELSEWHERE, ALONE),
    ),
    Row(
        "cluster-foreground",
        "foreground jobs, 8 clients, 8 workers",
        "Foreground jobs with 64 bytes, which are never stored, until the client has the result.",
        RATE,
        (ONE, SQLITE),
    ),
    Row(
        "cluster-postgres",
        "processor time of PostgreSQL for a job",
        "A job from its submission to its end: ours of the run above, with its record; theirs submitted in batches, "
        "then finished.",
        "us",
        (ONE, *THEIRS.values()),
        less_is_better=True,
    ),
    Row(
        "cluster-start",
        "submission to start by an idle worker",
        "A background job with 64 bytes until the only worker, which is idle, has it: the median of a hundred.",
        "ms",
        (ONE, ELSEWHERE, SQLITE, *THEIRS.values()),
        less_is_better=True,
    ),
)
SUBMIT_ONE = Work("submits, one client", "background", 0, clients=1, window=1)
SUBMIT = Work("submits", "background", 0, clients=4, window=64)
FINISH = Work("finish", "drain", 0, workers=8)
RUN = Work("submit and run", "run", 0, clients=4, window=64, workers=8)
FOREGROUND = Work("foreground", "foreground", 0, clients=8, window=1, workers=8)

Figures = Mapping[tuple[str, Contender], Sample]  # by row


class Result(NamedTuple):
    """One run of the load on all servers at once."""

    sample: Sample
    server_us: float
    postgres_us: float


class Servers:
    """Servers that run, with the load generator and the PostgreSQL behind them."""

    def __init__(
        self,
        places: Sequence[Place],
        program: Path,
        cluster: postgres.Cluster,
        effort: Effort,
        worker_port: int = 0,
    ) -> None:
        self.places = places
        self._worker_port = worker_port  # of another server, which has all workers
        self._program = program
        self._meter = Meter(cluster)
        self._effort = effort
        self._queued = 0  # background jobs that nobody has worked on

    def measure(self, work: Work) -> Result:
        """A load for about as long as the effort says."""
        jobs = self._effort.first
        for share in (0.1, 1.0):  # a few jobs say little of the rate of many: guess twice
            guess = self._run(work, jobs).sample.value / len(self.places)
            jobs = min(max(int(guess * self._effort.seconds * share), self._effort.first), MOST_JOBS)
        return self._run(work, jobs)

    def finish(self) -> Result:
        """All background jobs that were submitted so far."""
        jobs, self._queued = self._queued, 0
        return self._run(FINISH, jobs)

    def _run(self, work: Work, jobs: int) -> Result:
        """So many jobs on each server, all servers at once."""
        self._meter.begin()
        with concurrent.futures.ThreadPoolExecutor() as threads:
            sized = work._replace(jobs=jobs)
            functions = [f"echo{number}" for number in range(len(self.places))]
            run = functools.partial(gearman_load.run, self._program, worker_port=self._worker_port)
            found = list(
                threads.map(lambda place, name: run(place, sized, PAYLOAD, function=name), self.places, functions)
            )
        if work.mode == SUBMIT.mode:
            self._queued += jobs
        total = jobs * len(self.places)
        server_us = statistics.mean(sample.server_us or 0.0 for sample in found)
        slowest = max(jobs / sample.value for sample in found)
        return Result(Sample(total / slowest, server_us), server_us, self._meter.end(total))


class Cluster(Group):
    """Each of those who take part is measured once in a round, which brings a figure for each of its rows."""

    def __init__(self) -> None:
        super().__init__("cluster", "Servers that share a PostgreSQL", ROWS)

    def steps(self, turn: Turn) -> Steps:
        parts = self._parts(turn)
        if not parts:
            return
        with tempfile.TemporaryDirectory(prefix="geartrain-bench-") as folder, postgres.running() as cluster:
            program = gearman_load.compile_into(Path(folder))
            for name in rotated(list(parts), turn.number):
                yield _step(name, parts[name], functools.partial(MEASURES[name], cluster, program, turn.effort))

    def count(self, turn: Turn) -> int:
        return len(self._parts(turn))

    def _parts(self, turn: Turn) -> dict[str, set[tuple[str, str]]]:
        """The figures that are wanted, by the measurement that brings them."""
        wanted: dict[str, set[tuple[str, str]]] = {}
        for row in self.rows:
            if row.key in turn.keys:
                for contender in present(row, turn):
                    name = ONE.name if contender is ALONE else contender.name
                    wanted.setdefault(name, set()).add((row.key, contender.name))
        return wanted if NEEDED not in turn.absent else {}


def _step(name: str, wanted: set[tuple[str, str]], measure: Callable[[], Figures]) -> Step:
    def findings() -> list[Finding]:
        found = measure()
        return [Finding(row, each.name, sample) for (row, each), sample in found.items() if (row, each.name) in wanted]

    return Step(f"cluster: {name}", tuple(sorted(wanted)), findings)


def _one(cluster: postgres.Cluster, program: Path, effort: Effort) -> Figures:
    with postgres.fresh_schema(cluster) as schema, _serving(cluster.url(schema=schema)) as place:
        servers = Servers([place], program, cluster, effort)
        run = servers.measure(RUN)
        return {
            **_alone(servers, ONE, run, effort),
            ("cluster-postgres", ONE): Sample(run.postgres_us),
            ("cluster-two", ALONE): run.sample,
            ("cluster-two-cpu", ALONE): Sample(run.server_us + run.postgres_us),
            ("cluster-elsewhere", ALONE): run.sample,
            ("cluster-elsewhere-cpu", ALONE): Sample(run.server_us),
            ("cluster-elsewhere-foreground", ALONE): servers.measure(FOREGROUND).sample,
        }


def _sqlite(cluster: postgres.Cluster, program: Path, effort: Effort) -> Figures:
    with (
        tempfile.TemporaryDirectory(prefix="geartrain-bench-") as folder,
        _serving(f"sqlite://{folder}/jobs.db") as place,
    ):
        servers = Servers([place], program, cluster, effort)
        return _alone(servers, SQLITE, servers.measure(RUN), effort)


def _alone(servers: Servers, contender: Contender, run: Result, effort: Effort) -> Figures:
    """What is measured of one server on each of its stores."""
    foreground = servers.measure(FOREGROUND).sample
    submit_one = servers.measure(SUBMIT_ONE).sample
    submit = servers.measure(SUBMIT).sample
    finish = servers.finish().sample
    port = servers.places[0].port
    start = starts.median(port, port, min(postgres_queues.STARTS, effort.first))
    return {
        ("cluster-run", contender): run.sample,
        ("cluster-foreground", contender): foreground,
        ("cluster-submit-1", contender): submit_one,
        ("cluster-submit", contender): submit,
        ("cluster-finish", contender): finish,
        ("cluster-start", contender): Sample(start * 1e3),
    }


def _two(cluster: postgres.Cluster, program: Path, effort: Effort) -> Figures:
    with postgres.fresh_schema(cluster) as schema:
        url = cluster.url(schema=schema)
        with _serving(url) as first, _serving(url) as second:
            run = Servers([first, second], program, cluster, effort).measure(RUN)
    return {("cluster-two", TWO): run.sample, ("cluster-two-cpu", TWO): Sample(run.server_us + run.postgres_us)}


def _elsewhere(cluster: postgres.Cluster, program: Path, effort: Effort) -> Figures:
    with postgres.fresh_schema(cluster) as schema:
        url = cluster.url(schema=schema)
        with _serving(url) as home, _serving(url) as other:
            servers = Servers([home], program, cluster, effort, other.port)
            run = servers.measure(RUN)
            foreground = servers.measure(FOREGROUND).sample
            start = starts.median(home.port, other.port, min(postgres_queues.STARTS, effort.first))
    return {
        ("cluster-elsewhere", ELSEWHERE): run.sample,
        ("cluster-elsewhere-cpu", ELSEWHERE): Sample(run.server_us),
        ("cluster-elsewhere-foreground", ELSEWHERE): foreground,
        ("cluster-start", ELSEWHERE): Sample(start * 1e3),
    }


def _theirs(queue: postgres_queues.Queue, cluster: postgres.Cluster, program: Path, effort: Effort) -> Figures:
    found = postgres_queues.measure(queue, cluster, effort)
    return {(f"cluster-{kind}", THEIRS[queue.name]): sample for kind, sample in found.items()}


MEASURES: Mapping[str, Callable[[postgres.Cluster, Path, Effort], Figures]] = {
    ONE.name: _one,
    TWO.name: _two,
    ELSEWHERE.name: _elsewhere,
    SQLITE.name: _sqlite,
    **{queue.name: functools.partial(_theirs, queue) for queue in postgres_queues.QUEUES},
}


@contextlib.contextmanager
def _serving(store: str) -> Iterator[Place]:
    with serving.serve("--store", store, "--listen", f"gearman://{serving.HOST}:0") as server:
        yield Place(tuple(server.urls), server.pid)
