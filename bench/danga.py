"""A load on the danga door, in the shape of `load`: its own few lines of the draft of 2005, and crowd's clients.

A connection has one sync job under way at a time, whatever it asks for meanwhile: the draft has the answers in order.
"""

import struct
from collections.abc import Callable

from bench import crowd
from bench.crowd import PAYLOAD, connect

HEADER = struct.Struct(">4sBI")
NOOP, OFFER, SLEEP, CREATE, CREATED, GRAB, ASSIGN, COMPLETE, RESULT = 0, 1, 3, 4, 5, 6, 7, 11, 13
SYNC, ASYNC_HANDLE = 0, 1  # types of jobs


def packet(kind: int, body: bytes = b"") -> bytes:
    """A request."""
    return HEADER.pack(b"\0REQ", kind, len(body)) + body


def head_of(kind: int) -> bytes:
    """What every answer of a kind begins with, and nothing else of the load has in it."""
    return b"\0RES%c" % kind


def request(function: bytes, type: int) -> bytes:
    """A job without a duplicate key, and without flags."""
    return packet(CREATE, b"%b\0\0\0%c%b" % (function, type, PAYLOAD))


REFUSAL = head_of(CREATED) + b"\0\0\0\0"  # an empty handle


class Worker:
    """A connection that answers packets as they come."""

    def __init__(self, port: int, answer: Callable[[int, bytes], bytes]) -> None:
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
            said.append(self.answer(kind, data[at + HEADER.size : end]))
            at = end
        self.rest = data[at:]
        if out := b"".join(said):
            self.socket.sendall(out)


class Load(crowd.Crowd):
    """Sync jobs by `clients` clients with one under way each, through `workers` workers."""

    def __init__(self, port: int, function: bytes, clients: int, workers: int) -> None:
        super().__init__()
        self.asleep = 0
        for _ in range(workers):
            worker = Worker(port, self.work)
            self.add(worker)
            worker.socket.sendall(packet(OFFER, function) + packet(GRAB))
        self.until(lambda: self.asleep >= workers)
        for _ in range(clients):
            self.add_asker(
                crowd.Asker(port, self.tally, 1, request(function, SYNC), head_of(RESULT), (REFUSAL,)),
            )

    def work(self, kind: int, body: bytes) -> bytes:
        """A worker gives back what it got."""
        if kind == ASSIGN and body:
            return packet(COMPLETE, b"\0" + body.partition(b"\0")[2]) + packet(GRAB)
        if kind == ASSIGN:
            self.asleep += 1
            return packet(SLEEP)
        return packet(GRAB) if kind == NOOP else b""


class Submits(crowd.Crowd):
    """Async jobs, whose results are kept, by `clients` clients with `window` each in flight; nobody works on them."""

    def __init__(self, port: int, function: bytes, clients: int, window: int) -> None:
        super().__init__()
        for _ in range(clients):
            ask = request(function, ASYNC_HANDLE)
            self.add_asker(crowd.Asker(port, self.tally, window, ask, head_of(CREATED), (REFUSAL,)))
