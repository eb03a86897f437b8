"""MemoDB jobs beside a bare echo with pynng, NNG's Python binding, on the same machine in the same run.

    python bench/memodb.py [--jobs 20000] [--rounds 3] [--json]

Both are asked over one connection by the same raw-socket client. A *reply* is like pynng's echo: one request that
the broker answers by itself. A *job* goes through the broker to a worker and back, which is two requests and two
replies, and the worker takes its time from the same process as the client. The processor time that the server
took for each is shown as well: it stays the same when the machine has other things to do.
"""

import argparse
import contextlib
import json
import os
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support import serving

PAYLOAD = b"x" * 64
GREETING = b"\0SP\0\0\x30\0\0"
READY = b"\x84\x66memo01\x01\x40\x81\x64echo"
JOB = b"\x85\x66memo01\x02\x40\x64echo\x19\xea\x60"
QUESTION = b"\x83\x66memo01\x04\x44none"  # a heartbeat of a worker that nobody knows
ANSWER = b"\x83\x66memo01\x05\x44none"
RESULT = b"\x83\x66memo01\x03"
ID_AT = 1 + 7 + 1  # in a job to a worker: behind the array's head, the version and the type
ID_SIZE = 1 + 16  # with its length
PAYLOAD_AT = ID_AT + ID_SIZE + 5 + 3  # behind the service and the timeout
WINDOWS = (1, 50)

ECHO_THREADS = 8
ECHO_SERVER = f"""
import os, sys, threading, pynng
def serve(context):
    while True:
        context.send(context.recv())
with pynng.Rep0(listen="tcp://127.0.0.1:0") as server:
    for _ in range({ECHO_THREADS}):
        threading.Thread(target=serve, args=[server.new_context()], daemon=True).start()
    print(server.listeners[0].local_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # pynng cannot close a socket under threads that wait on it
"""

Server = Callable[[], contextlib.AbstractContextManager[tuple[int, int]]]  # its port and its process


class Pipe:
    """One connection; what comes in is handed to `answer`, message by message, and its answers go out together."""

    def __init__(self, port: int, answer: Callable[[bytes, int, int], bytes]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(GREETING)
        assert self.socket.recv(8, socket.MSG_WAITALL) == b"\0SP\0\0\x31\0\0"
        self.answer = answer
        self.rest = b""

    def readable(self) -> None:
        received = self.socket.recv(1 << 18)
        if not received:
            raise ConnectionError("the server closed the connection")
        data = self.rest + received
        at, said = 0, []
        while len(data) - at >= 8:
            end = at + 8 + int.from_bytes(data[at : at + 8], "big")
            if end > len(data):
                break
            said.append(self.answer(data, at + 8, end))
            at = end
        self.rest = data[at:]
        if out := b"".join(said):
            self.socket.sendall(out)


class Load:
    """Requests of clients with `window` in flight each; for jobs, workers that take so many at a time."""

    def __init__(
        self, port: int, window: int, body: bytes, ending: bytes, clients: int = 1, workers: int = 1, slots: int = 0
    ) -> None:
        self.window = window
        self.body = body
        self.ending = ending  # of each answer
        self.next_id = 0x80000000
        self.sent = self.done = self.wanted = 0
        self.waits: list[float] = []  # the shape of `crowd.Load`; they are not timed one by one here
        self.selector = selectors.DefaultSelector()
        self.clients = [Pipe(port, self._consume) for _ in range(clients)]
        self.workers = [Pipe(port, self._work) for _ in range(workers if body.startswith(JOB) else 0)]
        for worker in self.workers:
            worker.socket.sendall(b"".join(self._request(READY) for _ in range(slots or window)))
        for pipe in (*self.clients, *self.workers):
            self.selector.register(pipe.socket, selectors.EVENT_READ, pipe)

    def run(self, count: int) -> float:
        """Requests per second."""
        self.sent = self.done = 0
        self.wanted = count
        began = time.perf_counter()
        for client in self.clients:
            client.socket.sendall(b"".join(self._ask() for _ in range(self.window)))
        while self.done < count:
            ready = self.selector.select(30)
            if not ready:
                raise TimeoutError(f"nothing happened for 30 seconds; {self.done} of {count} are done")
            for key, _ in ready:
                key.data.readable()
        return count / (time.perf_counter() - began)

    def close(self) -> None:
        for pipe in (*self.clients, *self.workers):
            pipe.socket.close()
        self.selector.close()

    def _request(self, body: bytes) -> bytes:
        self.next_id += 1
        return struct.pack(">QI", 4 + len(body), self.next_id) + body

    def _ask(self) -> bytes:
        if self.sent >= self.wanted:
            return b""
        self.sent += 1
        return self._request(self.body)

    def _consume(self, data: bytes, start: int, end: int) -> bytes:
        assert data.endswith(self.ending, start, end)
        self.done += 1
        return self._ask()

    def _work(self, data: bytes, start: int, end: int) -> bytes:
        message = start + 4
        if data[message + 8] != 2:
            raise RuntimeError(f"not a job: {data[message:end]!r}")
        id = data[message + ID_AT : message + ID_AT + ID_SIZE]
        return self._request(RESULT + id + data[message + PAYLOAD_AT : end])


@contextlib.contextmanager
def ours() -> Iterator[tuple[int, int]]:
    with serving.serve("--store", "memory", "--listen", "memodb+tcp://127.0.0.1:0") as server:
        yield server.port, server.pid


@contextlib.contextmanager
def pynng() -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-c", ECHO_SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline().rpartition(":")[2]), server.pid
        finally:
            server.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(5)
            server.kill()


def processor_time(pid: int) -> float:
    """Seconds that a process has used so far, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server: Server, kinds: dict[str, tuple[bytes, bytes]], count: int) -> dict[str, float]:
    """Requests per second for each kind and each number in flight, and microseconds of the server for one."""
    found = {}
    with server() as (port, pid):
        for kind, (body, ending) in kinds.items():
            for window in WINDOWS:
                load = Load(port, window, body, ending)
                load.run(500)
                before = processor_time(pid)
                found[f"{kind}, {window} in flight"] = load.run(count)
                found[f"{kind}, {window} in flight: us each"] = (processor_time(pid) - before) / count * 1e6
                load.close()
    return found


SERVERS: dict[str, tuple[Server, dict[str, tuple[bytes, bytes]]]] = {
    "geartrain": (ours, {"jobs": (JOB + PAYLOAD, PAYLOAD), "replies": (QUESTION, ANSWER)}),
    "pynng": (pynng, {"echoes": (PAYLOAD, PAYLOAD)}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in SERVERS}
    for number in range(args.rounds):
        for name in sorted(SERVERS, reverse=bool(number % 2)):
            print(f"round {number + 1} of {args.rounds}: {name}", file=sys.stderr)
            server, kinds = SERVERS[name]
            rounds[name].append(measure(server, kinds, args.jobs))
    table = {
        name: {row: statistics.median(found[row] for found in results) for row in results[0]}
        for name, results in rounds.items()
    }
    if args.json:
        print(json.dumps(table))
        return
    print(f"beside pynng's echoes, per second; medians of {args.rounds} rounds")
    print(f"{'':31} {'geartrain':>10} {'pynng':>10} {'ratio':>7}")
    for row, mine in table["geartrain"].items():
        theirs = table["pynng"]["echoes," + row.partition(",")[2]]
        print(f"{row:31} {mine:10.0f} {theirs:10.0f} {mine / theirs:7.2f}")


if __name__ == "__main__":
    main()
