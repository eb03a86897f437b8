"""How long the jobs of a killed server wait for another one, and what a long transaction costs.

    python bench/takeover.py                     # both, a million jobs, a minute
    python bench/takeover.py --jobs 100000 --seconds 20

Two servers share a PostgreSQL with their default lease. **Takeover**: one of them gets jobs and is killed with -9; how
long until a worker of the other one has the first of them, until that one has all of them, and how quickly it answers
meanwhile? **Restart**: the same for the killed server started again under its name. **Old transaction**: a transaction
stays open that has read something, so that PostgreSQL can remove no row that has died since; does a job cost more at
the end than at the beginning?
"""

import argparse
import contextlib
import socket
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import gearman_load
from bench.contenders import Place
from bench.gearman_load import Work
from bench.postgres_cost import Meter
from tests.support import postgres, serving
from tests.support.gearman_peer import Kind, Peer, request, worker

FUNCTION: Final = b"echo"  # that of the load generator
PAYLOAD: Final = 64
RATE: Final = 3000  # jobs per second of the old transaction
TICK: Final = 0.01
QUARTERS: Final = 4
GRABS: Final = 16  # that a worker has under way
HEADER: Final = 12
COMPLETE: Final = request(Kind.WORK_COMPLETE, b"", b"")[:8]
ASK_EVERY: Final = 0.05


@contextlib.contextmanager
def server(url: str, name: str, port: int = 0) -> Iterator[serving.ServerProcess]:
    flags = ("--store", url, "--node-name", name, "--listen", f"gearman://{serving.HOST}:{port}")
    with serving.serve(*flags) as process:
        yield process


def queued(port: int) -> int:
    """How many jobs a server has."""
    with Peer(port) as peer:
        return sum(int(row[1]) for row in peer.listing("status") if row[0] == FUNCTION)


class Pings(threading.Thread):
    """Asks a server for its version all the time, and remembers how long each answer took."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._ended = threading.Event()
        self.seconds: list[float] = []

    def run(self) -> None:
        with Peer(self._port) as peer:
            while not self._ended.wait(0.002):
                began = time.perf_counter()
                peer.text("version").line()
                self.seconds.append(time.perf_counter() - began)

    def end(self) -> tuple[float, float]:
        """The 99th percentile and the longest, in milliseconds."""
        self._ended.set()
        self.join()
        ordered = sorted(self.seconds)
        return ordered[int(len(ordered) * 0.99)] * 1e3, ordered[-1] * 1e3


def first_job(port: int, began: float) -> float:
    """Seconds until a worker that waits at a server has a job."""
    with worker(port, FUNCTION) as peer:
        while peer.take() is None:
            peer.sleep().expect(Kind.NOOP, timeout=60.0)
        return time.perf_counter() - began


def takeover(cluster: postgres.Cluster, jobs: int) -> None:
    with (
        postgres.fresh_schema(cluster) as schema,
        tempfile.TemporaryDirectory(prefix="geartrain-bench-") as folder,
        contextlib.ExitStack() as stack,
    ):
        url = cluster.url(schema=schema)
        program = gearman_load.compile_into(Path(folder))
        victim = stack.enter_context(server(url, "victim"))
        heir = stack.enter_context(server(url, "heir"))
        submit(program, victim, jobs)
        pings = Pings(heir.port)
        pings.start()
        victim.kill()
        began = time.perf_counter()
        print(
            f"takeover: first of {jobs:,} jobs elsewhere {first_job(heir.port, began):.2f} s after kill -9", flush=True
        )
        while queued(heir.port) < jobs:
            time.sleep(ASK_EVERY)
        took = time.perf_counter() - began
        p99, longest = pings.end()
        print(f"takeover: all {jobs:,} after {took:.1f} s; other answers meanwhile p99 {p99:.1f}, max {longest:.1f} ms")
        port = heir.port
        heir.kill()
        began = time.perf_counter()
        again = stack.enter_context(server(url, "heir", port))
        ready = time.perf_counter() - began
        first = first_job(again.port, began)
        print(f"restart under the same name: ready after {ready:.2f} s, first job after {first:.2f} s")
        again.kill()


def submit(program: Path, server: serving.ServerProcess, jobs: int) -> None:
    work = Work("submits", "background", jobs, clients=4, window=256)
    gearman_load.run(program, Place(tuple(server.urls), server.pid), work, PAYLOAD)


def old_transaction(cluster: postgres.Cluster, seconds: float) -> None:
    """Run jobs at a fixed rate while a transaction is open, and compare the quarters of that time."""
    with postgres.fresh_schema(cluster) as schema, server(cluster.url(schema=schema), "one") as process:
        meter = Meter(cluster)
        rates, costs = [], []
        with cluster.connect() as old, running(process.port) as counts:
            old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT count(*) FROM pg_class")
            for _ in range(QUARTERS):
                meter.begin()
                before, began = counts[0], time.perf_counter()
                time.sleep(seconds / QUARTERS)
                done = counts[0] - before
                rates.append(done / (time.perf_counter() - began))
                costs.append(meter.end(max(done, 1)))
            old.execute("ROLLBACK")
    shown = ", ".join(f"{cost:.1f}" for cost in costs)
    share = statistics.mean(rates) / RATE
    print(f"old transaction: {share:.2f} of {RATE:,} jobs/s; PostgreSQL's us per job by quarter {shown}: ", end="")
    print(f"{costs[-1] / costs[0]:.2f} x")


@contextlib.contextmanager
def running(port: int) -> Iterator[list[int]]:
    """Submit and run background jobs at the rate; yields a list with the number of those that are done."""
    done, ended = [0], threading.Event()
    packet = request(Kind.SUBMIT_JOB_BG, FUNCTION, b"", bytes(PAYLOAD))

    def submit() -> None:
        with socket.create_connection((serving.HOST, port)) as connection:
            threading.Thread(target=drain, args=(connection,), daemon=True).start()
            began, sent = time.perf_counter(), 0
            while not ended.wait(TICK):
                due = int((time.perf_counter() - began) * RATE) - sent
                connection.sendall(packet * due)
                sent += due

    def drain(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(65536):
                pass

    def work() -> None:
        with socket.create_connection((serving.HOST, port)) as connection:
            connection.settimeout(1.0)
            connection.sendall(request(Kind.CAN_DO, FUNCTION) + request(Kind.GRAB_JOB) * GRABS)
            received = b""
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    received += connection.recv(65536)
                answer, received = answers(received)
                done[0] += answer.count(COMPLETE)
                if answer:
                    connection.sendall(answer)

    threads = [threading.Thread(target=submit), threading.Thread(target=work)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def answers(received: bytes) -> tuple[bytes, bytes]:
    """What a worker answers to the packets that it has, and what is left of an incomplete one."""
    sent: list[bytes] = []
    while len(received) >= HEADER:
        kind, size = struct.unpack_from("!II", received, 4)
        if len(received) < HEADER + size:
            break
        body, received = received[HEADER : HEADER + size], received[HEADER + size :]
        if kind == Kind.JOB_ASSIGN:
            sent += (request(Kind.WORK_COMPLETE, body.partition(b"\0")[0], b""), request(Kind.GRAB_JOB))
        elif kind == Kind.NO_JOB:
            sent.append(request(Kind.PRE_SLEEP))
        elif kind == Kind.NOOP:
            sent.append(request(Kind.GRAB_JOB) * GRABS)
    return b"".join(sent), received


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    with postgres.running() as cluster:
        takeover(cluster, arguments.jobs)
        old_transaction(cluster, arguments.seconds)


if __name__ == "__main__":
    main()
