"""Beside the Python task queues: empty tasks submitted and finished a second, with one worker process each.

    python bench/queues.py [--rounds 3] [--seconds 3] [--only rq huey] [--json found.json] [--svg picture.svg]

RQ, Celery, Dramatiq, huey, arq and SAQ keep their tasks in a real redis-server, which has them in memory; Geartrain has
every task on disk before a submission returns. Each is used in the quickest way that its documentation shows
(`bench/queues_peers`), in turns, so that a busy moment of the machine hits all alike. Figures are medians of the
rounds. Beside the rates stands the processor time for one task, of the program and of the Redis or Geartrain that it
talks to, since that hardly changes when the machine is busy with something else.

The first run installs the other queues (the `bench` extra of pyproject.toml), each into an environment of its own
beside the one that this runs in.
"""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import redis

from bench import environments
from bench.queues_report import picture
from tests.support import redis_server, serving

ROOT = pathlib.Path(__file__).parents[1]
PEERS = ROOT / "bench" / "queues_peers"
START_SECONDS = 60
# A worker's first moments are left out, and so is whatever it has not done after so long.
WARM_UP, LONGEST_WORK = 0.5, 6.0
LOOK_EVERY = 0.02

Pending = Callable[[], int]


class Queue(NamedTuple):
    """One of those that are measured."""

    name: str
    keys: tuple[tuple[str, str], ...] = ()  # Redis commands that count the tasks that are not done

    @property
    def peer(self) -> str:
        return f"peer_{self.name.lower()}.py"


QUEUES = (
    Queue("RQ", (("LLEN", "rq:queue:bench"),)),
    Queue("Celery", (("LLEN", "celery"), ("HLEN", "unacked"))),
    Queue("Dramatiq", (("HLEN", "dramatiq:bench.msgs"),)),
    Queue("huey", (("LLEN", "huey.redis.bench"),)),
    Queue("arq", (("ZCARD", "arq:queue"),)),
    Queue("SAQ", (("ZCARD", "saq:bench:incomplete"),)),
    Queue(picture.OURS),
)


class NoFigureError(Exception):
    """A queue could not be measured in a round; the others can."""


class Found(NamedTuple):
    """One round: tasks a second, and microseconds of processor time for one."""

    submitted: float
    finished: float
    submit_cost: float
    finish_cost: float


class Store(NamedTuple):
    """What keeps the tasks while they wait."""

    url: str
    pid: int
    pending: Pending


class Bar:
    """How far it is, on one line of the terminal."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.done = 0

    def step(self, what: str) -> None:
        filled = 30 * self.done // self.steps
        line = f"[{'#' * filled}{'.' * (30 - filled)}] {self.done}/{self.steps} {what}"
        print(
            f"\r{line:<79}" if sys.stderr.isatty() else line, end="" if sys.stderr.isatty() else "\n", file=sys.stderr
        )
        self.done += 1

    def end(self) -> None:
        self.step("done")
        print(file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="how long each queue is submitted to in a round")
    parser.add_argument("--only", nargs="*", default=[], metavar="QUEUE", help="besides ours")
    parser.add_argument("--json", type=pathlib.Path, help="write what was found to this file")
    parser.add_argument("--svg", type=pathlib.Path, help="draw it into this file")
    args = parser.parse_args()
    wanted = {name.lower() for name in args.only}
    queues = [queue for queue in QUEUES if not wanted or not queue.keys or queue.name.lower() in wanted]
    pythons = {queue: environment(queue) for queue in queues}
    found: dict[str, list[Found]] = {queue.name: [] for queue in queues}
    bar = Bar(args.rounds * len(queues))
    for number in range(args.rounds):
        for queue in queues:
            bar.step(f"round {number + 1}: {queue.name}")
            try:
                found[queue.name].append(measure(queue, pythons[queue], args.seconds))
            except NoFigureError as error:
                print(f"\n{error}", file=sys.stderr)
    bar.end()
    found = {name: rounds for name, rounds in found.items() if rounds}
    if picture.OURS not in found:
        return 1
    show(found)
    if args.json:
        args.json.write_text(json.dumps({name: [each._asdict() for each in rounds] for name, rounds in found.items()}))
    if args.svg:
        args.svg.write_text(drawing(found))
    return 0


def environment(queue: Queue) -> pathlib.Path:
    """The interpreter that has this queue."""
    if not queue.keys:
        return pathlib.Path(sys.executable)
    others = {other.name.lower() for other in QUEUES if other is not queue}
    wanted = [line for line in environments.extra("bench") if line.partition(">=")[0] not in others]
    return environments.python_with(queue.name.lower(), wanted)


def measure(queue: Queue, python: pathlib.Path, seconds: float) -> Found:
    """One round: submit for a while, then let a worker finish it."""
    with redis_store(queue) if queue.keys else durable_store() as store:
        before = processor(store.pid)
        command = [str(python), str(PEERS / queue.peer), "submit", store.url, str(seconds)]
        limit = START_SECONDS + 20 * seconds
        answer = subprocess.run(command, cwd=PEERS, capture_output=True, text=True, timeout=limit, check=False)
        if answer.returncode:
            raise NoFigureError(f"{queue.name} could not submit:\n{answer.stderr}")
        told = json.loads(answer.stdout)
        cost = told["processor"] / told["count"] + (processor(store.pid) - before) / store.pending()
        rate, work_cost = finished(queue, python, store)
        return Found(told["count"] / told["seconds"], rate, cost * 1e6, work_cost * 1e6)


@contextlib.contextmanager
def redis_store(queue: Queue) -> Iterator[Store]:
    """A fresh Redis."""
    with redis_server.serve() as running:
        client = redis.Redis(port=running.port)
        try:
            yield Store(
                f"redis://127.0.0.1:{running.port}/0",
                running.pid,
                lambda: sum(client.execute_command(*command) for command in queue.keys),
            )
        finally:
            client.close()


@contextlib.contextmanager
def durable_store() -> Iterator[Store]:
    """A fresh server of ours, with its jobs on disk."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--store", f"sqlite://{folder}/jobs.db", "--listen", "gearman://127.0.0.1:0")
        with serving.serve(*options) as server, socket.create_connection(("127.0.0.1", server.port), 10) as admin:
            yield Store(server.url, server.pid, lambda: jobs_in(admin))


def processor(pid: int) -> float:
    """Seconds of processor time that a process has used, its threads included."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def finished(queue: Queue, python: pathlib.Path, store: Store) -> tuple[float, float]:
    """Tasks a second, and the processor's seconds for one, from a moment after the worker's first to its last."""
    command = [str(python), str(PEERS / queue.peer), "work", store.url]
    total = store.pending()
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, cwd=PEERS, stdout=log, stderr=subprocess.STDOUT) as worker,
    ):
        try:
            began = waited_for(lambda: store.pending() < total, worker)
            if began is None:
                log.seek(0)
                raise NoFigureError(f"{queue.name} does not work:\n{log.read()}")
            waited_for(lambda: time.perf_counter() - began > WARM_UP, worker)
            used = processor(worker.pid) + processor(store.pid)
            first_at, first = time.perf_counter(), store.pending()
            last_at, last = first_at, first
            while last and last_at - first_at < LONGEST_WORK:
                time.sleep(LOOK_EVERY)
                last_at, last = time.perf_counter(), store.pending()
            used = processor(worker.pid) + processor(store.pid) - used
        finally:
            worker.terminate()
            try:
                worker.wait(10)
            except subprocess.TimeoutExpired:
                worker.kill()
    if first == last:
        raise NoFigureError(f"{queue.name} finished {total} tasks too quickly to measure; use more --seconds")
    return (first - last) / (last_at - first_at), used / (first - last)


def waited_for(condition: Callable[[], bool], worker: "subprocess.Popen[bytes]") -> float | None:
    """When a condition came true; None: it did not while the worker lived, or in good time."""
    deadline = time.perf_counter() + START_SECONDS
    while time.perf_counter() < deadline and worker.poll() is None:
        if condition():
            return time.perf_counter()
        time.sleep(LOOK_EVERY)
    return None


def medians(found: dict[str, list[Found]], what: str) -> dict[str, float]:
    return {name: statistics.median(getattr(each, what) for each in rounds) for name, rounds in found.items()}


def show(found: dict[str, list[Found]]) -> None:
    columns = {what: medians(found, what) for what in Found._fields}
    print(f"{'':12}{'submitted/s':>20}{'finished/s':>20}{'us to submit':>20}{'us to finish':>20}")
    for name in sorted(found, key=lambda name: -columns["submitted"][name]):
        print(f"{name:12}" + "".join(f"{cell(figures, name):>20}" for figures in columns.values()))
    print(f"In brackets: theirs in terms of ours, so {picture.OURS} is 1.")


def cell(figures: dict[str, float], name: str) -> str:
    return f"{figures[name]:,.0f} ({figures[name] / figures[picture.OURS]:.2f})"


def drawing(found: dict[str, list[Found]]) -> str:
    groups = {
        "Empty tasks submitted a second": medians(found, "submitted"),
        "Empty tasks finished a second by one worker process": medians(found, "finished"),
    }
    rounds = len(next(iter(found.values())))
    return picture.draw(groups, f"Median of {rounds} round(s) on one machine. Geartrain has every task on disk first.")


if __name__ == "__main__":
    sys.exit(main())
