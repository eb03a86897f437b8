"""One measurement of one Python task queue: a fresh store, a program that submits, and workers.

Everything that a queue needs of its library is in `bench/queues_peers`, and runs in an environment of its own. What is
not finished is counted from outside, in Redis or by the server's administrative protocol, so that counting costs the
programs that are measured nothing.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, NamedTuple, Self

import redis

from bench import environments
from bench.figures import Sample
from tests.support import redis_server, serving

PEERS = pathlib.Path(__file__).parent / "queues_peers"
DURABLE, MEMORY = "Geartrain, durable", "Geartrain, memory"
PROCESSES = 10  # of the row that has several
START_SECONDS = 60  # for a worker to begin
LONGEST_WORK = 1.5  # times the seconds of a figure; what is not done by then does not count
STOP_SECONDS = 3
LONGEST_RETRIES = 90.0  # seconds for all of them
LOOK_EVERY = 0.02
SHORTEST = 1.0  # seconds of a figure; with less, a worker is done before it can be timed
TRIAL = 100  # retried tasks that say how many fit into the time
FETCHED, FEWEST_FETCHED = 500, 50  # tasks whose results are fetched together; less where a figure takes no second
CHORD = 1000  # tasks of a chord; less in the same way
# Left out of a figure: a worker's first moments, or a part of its tasks if that is over sooner. Several processes need
# longer until all of them work.
WARM_UP, WARM_UP_PROCESSES, WARM_UP_SHARE = 0.5, 3.0, 0.25


class Queue(NamedTuple):
    """One of those that are measured."""

    name: str
    # Redis commands that count the tasks that are not done; none: a Geartrain, with this store.
    keys: tuple[tuple[str, str], ...] = ()
    store: str = ""

    @property
    def ours(self) -> bool:
        return not self.keys

    @property
    def library(self) -> str:
        return "geartrain" if self.ours else self.name.lower()


QUEUES = (
    Queue(DURABLE, store="sqlite://{folder}/jobs.db"),
    Queue(MEMORY, store="memory"),
    Queue("RQ", (("LLEN", "rq:queue:bench"), ("ZCARD", "rq:wip:bench"))),
    Queue("Celery", (("LLEN", "celery"), ("HLEN", "unacked"))),
    Queue("Dramatiq", (("HLEN", "dramatiq:bench.msgs"), ("HLEN", "dramatiq:bench.DQ.msgs"))),
    Queue("huey", (("LLEN", "huey.redis.bench"),)),
    Queue("arq", (("ZCARD", "arq:queue"),)),
    Queue("SAQ", (("ZCARD", "saq:bench:incomplete"),)),
)


class NoFigureError(Exception):
    """A queue could not be measured in a round; the others can."""


class Store(NamedTuple):
    """What keeps the tasks while they wait."""

    url: str
    pid: int
    pending: Callable[[], int]


class Place(NamedTuple):
    """A queue with its interpreter and a fresh store; the row says what is measured."""

    queue: Queue
    python: pathlib.Path
    store: Store
    row: str

    def command(self, *words: str) -> list[str]:
        return [str(self.python), str(PEERS / "run_peer.py"), f"peer_{self.queue.library}", *words]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "BENCH_URL": self.store.url, "BENCH_ROW": self.row}

    def submit(self, *words: str) -> dict[str, float]:
        """Let the peer submit, and return what it says of that."""
        said = subprocess.run(
            self.command(*words), cwd=PEERS, env=self.environment(), capture_output=True, text=True, check=False
        )
        if said.returncode:
            raise NoFigureError(f"{self.queue.name}, {' '.join(words)}:\n{said.stderr}")
        return dict(json.loads(said.stdout)) if said.stdout else {}


class Workers:
    """A peer that works, with all processes that it has started."""

    def __init__(self, place: Place, *words: str) -> None:
        self.place = place
        self.words = words
        self.log: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the block)

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self.place.command(*self.words),
            cwd=PEERS,
            env=self.place.environment(),
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        return self

    def __exit__(self, *_: object) -> None:
        with self.process, self.log:
            # Their tasks go away with the store: there is nothing to wait for but children and files of their own.
            everyone = family(self.process.pid)
            for number in (signal.SIGTERM, signal.SIGKILL):
                for pid in everyone:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(STOP_SECONDS)

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> float:
        """When a condition came true."""
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline and self.process.poll() is None:
            if condition():
                return time.perf_counter()
            time.sleep(LOOK_EVERY)
        self.log.seek(0)
        why = f"it ended with {self.process.returncode}" if self.process.poll() is not None else f"{seconds:.0f} s over"
        raise NoFigureError(f"{self.place.queue.name}, {' '.join(self.words)}: {why}:\n{self.log.read()[-2000:]}")

    def processor(self) -> float:
        """Seconds of processor time that the workers and the store have used."""
        return processor(self.place.store.pid, *family(self.process.pid))


def environment(queue: Queue) -> pathlib.Path:
    """The interpreter that has this queue."""
    if queue.ours:
        return pathlib.Path(sys.executable)
    others = {other.library for other in QUEUES if other is not queue}
    wanted = [line for line in environments.extra("bench") if line.partition(">=")[0] not in others]
    return environments.python_with(queue.library, wanted)


def plain(queue: Queue, seconds: float, appendfsync: str) -> Mapping[str, Sample]:
    """Submit empty tasks for a while, then let one worker process finish them."""
    with fresh(queue, "plain", appendfsync) as place:
        store, before = place.store, processor(place.store.pid)
        told = place.submit("submit", str(max(seconds, SHORTEST)))
        cost = told["processor"] / told["count"] + (processor(store.pid) - before) / store.pending()
        with Workers(place, "work") as workers:
            finished = emptied(workers, WARM_UP, seconds)
    return {"submit": Sample(told["count"] / told["seconds"], cost * 1e6), "work": finished}


def processes(queue: Queue, seconds: float, appendfsync: str) -> Mapping[str, Sample]:
    """The same, finished by several worker processes."""
    with fresh(queue, "processes", appendfsync) as place:
        place.submit("submit", str(max(seconds, SHORTEST)))
        with Workers(place, "work-many", str(PROCESSES)) as workers:
            return {"processes": emptied(workers, WARM_UP_PROCESSES, seconds)}


def results(queue: Queue, seconds: float, appendfsync: str) -> Mapping[str, Sample]:
    """Submit tasks and fetch all their results, again and again, while one worker process works."""
    with fresh(queue, "results", appendfsync) as place, Workers(place, "work"):
        together = max(FEWEST_FETCHED, min(FETCHED, int(FETCHED * seconds)))
        told = place.submit("fetch", str(seconds), str(together))
    return {"results": Sample(told["count"] / told["seconds"])}


def chords(queue: Queue, seconds: float, appendfsync: str) -> Mapping[str, Sample]:
    """Submit tasks and one that gets all their results, and wait for its result, while one worker process works."""
    with fresh(queue, "chords", appendfsync) as place, Workers(place, "work"):
        together = max(FEWEST_FETCHED, min(CHORD, int(CHORD * seconds)))
        told = place.submit("chord", str(seconds), str(together))
    return {"chords": Sample(told["count"] / told["seconds"])}


def retries(queue: Queue, seconds: float, appendfsync: str) -> Mapping[str, Sample]:
    """Tasks that fail once, until all of them have succeeded: a few to see how long that takes, then many."""
    count, found = TRIAL, Sample(0)
    for _ in range(2):
        with fresh(queue, "retries", appendfsync) as place:
            place.submit("fail", str(count))
            with Workers(place, "work") as workers:
                found = retried(workers, count)
        count = max(TRIAL, int(found.value * seconds))
    return {"retries": found}


def emptied(workers: Workers, warm_up: float, seconds: float) -> Sample:
    """Tasks a second, and the processor's microseconds for one, from a moment after the workers' first to the last."""
    pending = workers.place.store.pending
    total = pending()
    began = workers.wait_for(lambda: pending() < total, START_SECONDS)
    warm = (1 - WARM_UP_SHARE) * total
    workers.wait_for(lambda: time.perf_counter() - began > warm_up or pending() < warm, START_SECONDS)
    used = workers.processor()
    first_at, first = time.perf_counter(), pending()
    last_at, last = first_at, first
    while last and last_at - first_at < LONGEST_WORK * max(seconds, SHORTEST):
        time.sleep(LOOK_EVERY)
        last_at, last = time.perf_counter(), pending()
    if first == last:
        raise NoFigureError(f"{workers.place.queue.name} finished {total} tasks too quickly; use more --seconds")
    return Sample((first - last) / (last_at - first_at), (workers.processor() - used) / (first - last) * 1e6)


def retried(workers: Workers, count: int) -> Sample:
    """The same for tasks that fail once. They wait behind one that does not: when it is gone, the workers are there."""
    pending = workers.place.store.pending
    total = pending()
    began = workers.wait_for(lambda: pending() != total, START_SECONDS)
    used = workers.processor()
    looks = [total]

    def is_empty() -> bool:
        """Twice in a row, since a task may be counted nowhere on its way from a worker back to the queue."""
        looks.append(pending())
        return looks[-1] == looks[-2] == 0

    ended = workers.wait_for(is_empty, LONGEST_RETRIES)
    return Sample(count / (ended - began), (workers.processor() - used) / count * 1e6)


@contextlib.contextmanager
def fresh(queue: Queue, row: str, appendfsync: str) -> Iterator[Place]:
    """A store with nothing in it."""
    with own_store(queue) if queue.ours else redis_store(queue, appendfsync) as store:
        yield Place(queue, environment(queue), store, row)


def redis_options(appendfsync: str) -> tuple[str, ...]:
    """Of a Redis with its log synced so; `off`: without a log."""
    if appendfsync == "off":
        return ("--appendonly", "no")
    return ("--appendonly", "yes", "--appendfsync", appendfsync)


@contextlib.contextmanager
def redis_store(queue: Queue, appendfsync: str) -> Iterator[Store]:
    with (
        redis_server.serve(options=redis_options(appendfsync)) as running,
        contextlib.closing(redis.Redis(port=running.port)) as client,
    ):
        yield Store(
            f"redis://127.0.0.1:{running.port}/0",
            running.pid,
            lambda: sum(client.execute_command(*command) for command in queue.keys),
        )


@contextlib.contextmanager
def own_store(queue: Queue) -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        options = ("--store", queue.store.format(folder=folder), "--listen", "gearman://127.0.0.1:0")
        with serving.serve(*options) as server, socket.create_connection(("127.0.0.1", server.port), 10) as admin:
            yield Store(server.url, server.pid, lambda: jobs_in(admin))


def jobs_in(admin: socket.socket) -> int:
    """All jobs of all functions, by the administrative protocol."""
    admin.sendall(b"status\n")
    answer = b""
    while not answer.endswith(b".\n"):
        part = admin.recv(65536)
        if not part:
            raise ConnectionError("the server closed the connection")
        answer += part
    return sum(int(line.split(b"\t")[1]) for line in answer.splitlines()[:-1])


def processor(*pids: int) -> float:
    """Seconds of processor time that these processes have used, their threads included."""
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in map(_stat, pids) if stat)
    return ticks / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and all that descend from it and are alive."""
    children: dict[int, list[int]] = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        stat = _stat(int(folder.name))
        if stat:
            children.setdefault(int(stat[1]), []).append(int(folder.name))
    found = [pid]
    for member in found:  # it grows meanwhile
        found += children.get(member, [])
    return found


def _stat(pid: int) -> list[str]:
    """What /proc has after the program's name, which may contain anything; nothing if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
