"""The Periodic door beside the Gearman door of the same server, under the same load, in one run.

    python bench/periodic.py [--jobs 20000] [--rounds 3] [--scheduled 1000000] [--json]

For each of Gearman, Periodic in today's dialect and Periodic in the document's: round trips (a client waits, a worker
answers) and submits that are kept on disk, per second, and how much of a processor's time each takes the server.
The load is Python and busier than the server, so the time that the server takes says more than the rate. Then the same
rates again with so many jobs on the schedule, and how late jobs are that are due at a whole second.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import selectors
import statistics
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import crowd, load
from tests.support import serving

FUNCTION = b"echo"
PAYLOAD = b"x" * 64
CLIENTS, WINDOW, WORKERS = 8, 8, 8
BATCH = 10_000  # jobs of one LOAD

GRAB, DONE, ASSIGN, CAN_DO, SUBMIT, SUCCESS, LOAD, RUN, DATA = 1, 3, 5, 7, 13, 16, 19, 25, 30
HEAD = struct.Struct(">4sI")
HEAD_CRC = struct.Struct(">4sII")
NUMBER = struct.Struct(">I")
TAIL = struct.Struct(">qB")
SUBMIT_BG = 18  # Gearman's

names = itertools.count(1)  # no job ever has the name of another one


class Dialect:
    """How the load frames what it says."""

    def __init__(self, crc: bool) -> None:
        self.crc = crc
        self.head = HEAD_CRC.size if crc else HEAD.size

    def frame(self, payload: bytes) -> bytes:
        if self.crc:
            return HEAD_CRC.pack(b"\0REQ", len(payload), zlib.crc32(payload)) + payload
        return HEAD.pack(b"\0REQ", len(payload)) + payload


def job(name: bytes, run_at: int = 0) -> bytes:
    return b"\x04%b%c%b%b%b%b" % (FUNCTION, len(name), name, NUMBER.pack(len(PAYLOAD)), PAYLOAD, TAIL.pack(run_at, 0))


class Peer:
    """A connection that answers frames as they come."""

    def __init__(self, port: int, dialect: Dialect, kind: int, answer: Callable[[bytes], bytes]) -> None:
        self.socket = crowd.connect(port)
        self.dialect = dialect
        self.answer = answer
        self.rest = b""
        self.socket.sendall(dialect.frame(bytes([kind])))
        while not (said := self.frames()):
            pass
        assert len(said) == 1

    def frames(self) -> list[bytes]:
        data = self.rest + self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
        at, found, head = 0, [], self.dialect.head
        while len(data) - at >= head:
            end = at + head + NUMBER.unpack_from(data, at + 4)[0]
            if end > len(data):
                break
            found.append(data[at + head : end])
            at = end
        self.rest = data[at:]
        return found

    def readable(self) -> None:
        if out := b"".join([self.answer(frame) for frame in self.frames()]):
            self.socket.sendall(out)


class PeriodicLoad:
    """The shape of `load.Load`: so many clients with so many jobs each in flight, workers that take one at a time."""

    def __init__(self, port: int, crc: bool) -> None:
        self.dialect = Dialect(crc)
        self.done = self.sent = self.wanted = 0
        self.command = RUN
        self.selector = selectors.DefaultSelector()
        self.workers = [self._add(Peer(port, self.dialect, 2, self._work)) for _ in range(WORKERS)]
        self.clients = [self._add(Peer(port, self.dialect, 1, self._consume)) for _ in range(CLIENTS)]
        for worker in self.workers:
            offer = self.dialect.frame(b"\0\0\0\1%c\x04%b" % (CAN_DO, FUNCTION))
            worker.socket.sendall(offer + self.dialect.frame(b"\0\0\0\2%c" % GRAB))

    def run(self, jobs: int, command: int) -> float:
        """Jobs per second: RUN for round trips, SUBMIT for submits alone."""
        self.done = self.sent = 0
        self.wanted = jobs
        self.command = command
        began = time.perf_counter()
        for client in self.clients:
            client.socket.sendall(b"".join(self._next() for _ in range(WINDOW)))
        while self.done < jobs:
            for key, _ in self.selector.select(30) or _nothing():
                key.data.readable()
        return jobs / (time.perf_counter() - began)

    def dismiss_workers(self) -> None:
        for worker in self.workers:
            self.selector.unregister(worker.socket)
            worker.socket.close()
        self.workers = []

    def close(self) -> None:
        for peer in (*self.workers, *self.clients):
            peer.socket.close()
        self.selector.close()

    def _add(self, peer: Peer) -> Peer:
        self.selector.register(peer.socket, selectors.EVENT_READ, peer)
        return peer

    def _next(self) -> bytes:
        if self.sent >= self.wanted:
            return b""
        self.sent += 1
        number = next(names)
        return self.dialect.frame(b"%b%c%b" % (NUMBER.pack(number), self.command, job(b"%d" % number)))

    def _consume(self, frame: bytes) -> bytes:
        if self.command == SUBMIT and frame[4] != SUCCESS:
            raise RuntimeError(f"a job was not accepted: {frame!r}")
        self.done += 1
        return self._next()

    def _work(self, frame: bytes) -> bytes:
        if frame[4] != ASSIGN:
            return b""
        if self.dialect.crc:
            name = 5 + 1 + frame[5]
            handle = frame[5 : name + 1 + frame[name]]
        else:
            handle = frame[5 : 6 + frame[5]]
        done = self.dialect.frame(b"\0\0\0\3%c%b%b" % (DONE, handle, PAYLOAD))
        return done + self.dialect.frame(b"\0\0\0\2%c" % GRAB)


class GearmanSubmits:
    """Background submits by `load`'s own few lines of Gearman."""

    def __init__(self, port: int) -> None:
        self.done = self.sent = self.wanted = 0
        self.selector = selectors.DefaultSelector()
        self.clients = [load.Peer(port, self._consume) for _ in range(CLIENTS)]
        for client in self.clients:
            self.selector.register(client.socket, selectors.EVENT_READ, client)

    def run(self, jobs: int) -> float:
        self.done = self.sent = 0
        self.wanted = jobs
        began = time.perf_counter()
        for client in self.clients:
            client.socket.sendall(b"".join(self._next() for _ in range(WINDOW)))
        while self.done < jobs:
            for key, _ in self.selector.select(30) or _nothing():
                key.data.readable()
        return jobs / (time.perf_counter() - began)

    def close(self) -> None:
        for client in self.clients:
            client.socket.close()
        self.selector.close()

    def _next(self) -> bytes:
        if self.sent >= self.wanted:
            return b""
        self.sent += 1
        return load.packet(SUBMIT_BG, b"%b-g\0%d\0%b" % (FUNCTION, next(names), PAYLOAD))

    def _consume(self, peer: load.Peer, kind: int, body: bytes) -> bytes:
        if kind != load.CREATED:
            raise RuntimeError(body.decode("utf-8", "replace"))
        self.done += 1
        return self._next()


def _nothing() -> list[tuple[selectors.SelectorKey, int]]:
    raise TimeoutError("nothing happened for 30 seconds")


class Server:
    """A server with both doors, and what it has used of a processor."""

    def __init__(self, process: serving.ServerProcess) -> None:
        ports = {url.partition(":")[0]: int(url.rpartition(":")[2]) for url in process.urls}
        self.gearman, self.periodic = ports["gearman"], ports["periodic"]
        self._stat = pathlib.Path(f"/proc/{process.pid}/stat")

    def processor_seconds(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, run: Callable[[int], float], jobs: int) -> tuple[float, float]:
        """Jobs per second, and the server's own microseconds per job."""
        before = self.processor_seconds()
        rate = run(jobs)
        return rate, (self.processor_seconds() - before) / jobs * 1e6


@contextlib.contextmanager
def serve(store: str) -> Iterator[Server]:
    listen = ("--listen", "gearman://127.0.0.1:0", "--listen", "periodic://127.0.0.1:0")
    with serving.serve("--store", store, *listen) as process:
        yield Server(process)


def loads(server: Server) -> Iterator[tuple[str, Callable[[int], float], Callable[[], None]]]:
    """Round trips by each of the three; the last thing closes the load."""
    gearman = load.Load(server.gearman, FUNCTION + b"-g", CLIENTS, WINDOW, WORKERS)
    yield "gearman", gearman.run, gearman.close
    for name, crc in (("today", True), ("document", False)):
        periodic = PeriodicLoad(server.periodic, crc)
        yield name, lambda jobs, periodic=periodic: periodic.run(jobs, RUN), periodic.close  # type: ignore[misc]


def submits(server: Server) -> Iterator[tuple[str, Callable[[int], float], Callable[[], None]]]:
    gearman = GearmanSubmits(server.gearman)
    yield "gearman", gearman.run, gearman.close
    for name, crc in (("today", True), ("document", False)):
        periodic = PeriodicLoad(server.periodic, crc)
        periodic.dismiss_workers()
        yield name, lambda jobs, periodic=periodic: periodic.run(jobs, SUBMIT), periodic.close  # type: ignore[misc]


def compare(server: Server, kind: Callable[[Server], Iterator], jobs: int, rounds: int) -> dict[str, dict[str, float]]:  # type: ignore[type-arg]
    """The median of every round, each of which has all three in turn."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for name, run, close in kind(server):
            run(jobs // 20)
            found.setdefault(name, []).append(server.measure(run, jobs))
            close()
    table = {
        name: {
            "per_second": statistics.median(r for r, _ in rows),
            "microseconds": statistics.median(c for _, c in rows),
        }
        for name, rows in found.items()
    }
    for row in table.values():
        row["ratio"] = row["per_second"] / table["gearman"]["per_second"]
        row["ratio_of_time"] = table["gearman"]["microseconds"] / row["microseconds"]
    return table


def fill(server: Server, count: int) -> None:
    """So many jobs on the schedule, none of which is due."""
    dialect = Dialect(crc=False)
    peer = Peer(server.periodic, dialect, 1, lambda frame: b"")
    for first in range(0, count, BATCH):
        entries = [job(b"s%d" % number, 4_000_000_000 + number) for number in range(first, min(first + BATCH, count))]
        dump = len(entries).to_bytes(8, "big") + b"".join(entries)
        peer.socket.sendall(dialect.frame(b"\0\0\0\1%c%b" % (LOAD, dump)))
        while not peer.frames():
            pass
    peer.socket.close()


def lateness(server: Server, jobs: int = 40, seconds: int = 4) -> list[float]:
    """By how many milliseconds jobs that are due at a whole second come late to a worker that waits."""
    dialect = Dialect(crc=False)
    worker = Peer(server.periodic, dialect, 2, lambda frame: b"")
    worker.socket.sendall(dialect.frame(b"\0\0\0\1%c\x05exact" % CAN_DO))
    first = int(time.time()) + 2
    for number in range(jobs):
        worker.socket.sendall(dialect.frame(b"gr%02d%c" % (number, GRAB)))
        exact = job(b"%d" % number, first + number % seconds).replace(b"\x04" + FUNCTION, b"\x05exact", 1)
        worker.socket.sendall(dialect.frame(b"su%02d%c%b" % (number, SUBMIT, exact)))
    late: list[float] = []
    while len(late) < jobs:
        for frame in worker.frames():
            if frame[4] == ASSIGN:
                run_at = TAIL.unpack_from(frame, len(frame) - TAIL.size)[0]
                late.append((time.time() - run_at) * 1000)
                worker.socket.sendall(dialect.frame(b"done%c%b" % (DONE, frame[5 : 6 + frame[5]])))
    worker.socket.close()
    return sorted(late)


def show(title: str, table: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}")
    print(f"{'':10} {'per second':>12} {'ratio':>7} {'server us':>11} {'ratio':>7}")
    for name, row in table.items():
        print(
            f"{name:10} {row['per_second']:12,.0f} {row['ratio']:7.2f}"
            f" {row['microseconds']:11.1f} {row['ratio_of_time']:7.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scheduled", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report: dict[str, object] = {}
    with serve("memory") as server:
        report["round trips"] = compare(server, loads, options.jobs, options.rounds)
        report["late, milliseconds"] = {"median": statistics.median(late := lateness(server)), "most": late[-1]}
        if options.scheduled:
            fill(server, options.scheduled)
            title = f"round trips beside {options.scheduled:,} scheduled jobs"
            report[title] = compare(server, loads, options.jobs, options.rounds)
            report["late beside them"] = {"median": statistics.median(late := lateness(server)), "most": late[-1]}
    with tempfile.TemporaryDirectory() as folder, serve(f"sqlite://{folder}/jobs.db") as server:
        report["durable submits"] = compare(server, submits, options.jobs, options.rounds)
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for title, table in report.items():
        if isinstance(table, dict) and "gearman" in table:
            show(title, table)
        else:
            print(f"\n{title}: {table}")


if __name__ == "__main__":
    main()
