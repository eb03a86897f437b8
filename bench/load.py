"""A Gearman load: clients and workers with their own few lines of protocol, for any Gearman server.

It is Python, so with many jobs per second it is busier than the server it measures: compare servers under the same
load, read the ratio, and the processor time that the server took for a job beside it.
"""

import struct
from collections.abc import Callable

from bench import crowd
from bench.crowd import PAYLOAD, connect

HEADER = struct.Struct(">4sII")
CAN_DO, PRE_SLEEP, NOOP, SUBMIT, CREATED, GRAB, NO_JOB, ASSIGN, COMPLETE = 1, 4, 6, 7, 8, 9, 10, 11, 13
SUBMIT_BG, ERROR = 18, 19


def packet(kind: int, body: bytes = b"") -> bytes:
    """A request."""
    return HEADER.pack(b"\0REQ", kind, len(body)) + body


def head_of(kind: int) -> bytes:
    """What every answer of a kind begins with, and nothing else of the load has in it."""
    return b"\0RES" + kind.to_bytes(4, "big")


GRAB_AGAIN, SLEEP = packet(GRAB), packet(PRE_SLEEP)


class Peer:
    """A connection that answers packets as they come."""

    def __init__(self, port: int, answer: Callable[["Peer", int, bytes], bytes]) -> None:
        self.socket = connect(port)
        self.answer = answer
        self.rest = b""

    def readable(self) -> None:
        data = self.rest + crowd.receive(self.socket)
        at, said = 0, []
        while len(data) - at >= HEADER.size:
            _, kind, size = HEADER.unpack_from(data, at)
            end = at + HEADER.size + size
            if end > len(data):
                break
            said.append(self.answer(self, kind, data[at + HEADER.size : end]))
            at = end
        self.rest = data[at:]
        if out := b"".join(said):
            self.socket.sendall(out)


class _Gearman(crowd.Crowd):
    """What the three kinds of load have in common."""

    def __init__(self, port: int, function: bytes) -> None:
        super().__init__()
        self.port = port
        self.function = function
        self.asleep = 0

    def add_clients(self, count: int, window: int, kind: int, answer: int) -> None:
        request = packet(kind, self.function + b"\0\0" + PAYLOAD)
        for _ in range(count):
            client = crowd.Asker(self.port, self.tally, window, request, head_of(answer), (head_of(ERROR),))
            self.add_asker(client)

    def add_workers(self, count: int) -> list[Peer]:
        workers = [Peer(self.port, self.work) for _ in range(count)]
        for worker in workers:
            self.add(worker)
        return workers

    def work(self, peer: Peer, kind: int, body: bytes) -> bytes:
        """A worker gives back what it got."""
        if kind == ASSIGN:
            handle, _, payload = body.split(b"\0", 2)
            return packet(COMPLETE, handle + b"\0" + payload) + GRAB_AGAIN
        if kind == NO_JOB:
            self.asleep += 1
            return SLEEP
        if kind == ERROR:
            raise RuntimeError(f"the server refused a worker: {body!r}")
        return GRAB_AGAIN if kind == NOOP else b""


class Load(_Gearman):
    """Foreground round trips through `workers` workers by `clients` clients with `window` jobs each in flight."""

    def __init__(self, port: int, function: bytes, clients: int, window: int, workers: int) -> None:
        super().__init__(port, function)
        for worker in self.add_workers(workers):
            worker.socket.sendall(packet(CAN_DO, function) + GRAB_AGAIN)
        self.until(lambda: self.asleep >= workers)
        self.add_clients(clients, window, SUBMIT, COMPLETE)


class Submits(_Gearman):
    """Background submits by `clients` clients with `window` each in flight; nobody works on them."""

    def __init__(self, port: int, function: bytes, clients: int, window: int) -> None:
        super().__init__(port, function)
        self.add_clients(clients, window, SUBMIT_BG, CREATED)


class Drain(_Gearman):
    """Workers that come to a full queue; a run is over when they were given so many jobs."""

    def __init__(self, port: int, function: bytes, workers: int) -> None:
        super().__init__(port, function)
        self.workers = self.add_workers(workers)

    def begin(self) -> None:
        for worker in self.workers:
            worker.socket.sendall(packet(CAN_DO, self.function) + GRAB_AGAIN)

    def work(self, peer: Peer, kind: int, body: bytes) -> bytes:
        self.tally.done += kind == ASSIGN
        return super().work(peer, kind, body)
