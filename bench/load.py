"""A Gearman load in one thread: clients and workers on one selector, with their own few lines of protocol.

It is Python, so with many jobs per second it is busier than the server it measures: compare servers under the same
load, and read the ratio.
"""

import selectors
import socket
import struct
import time
from collections.abc import Callable

HEADER = struct.Struct(">4sII")
CAN_DO, PRE_SLEEP, NOOP, SUBMIT, CREATED, GRAB, NO_JOB, ASSIGN, COMPLETE = 1, 4, 6, 7, 8, 9, 10, 11, 13
ERROR = 19


def packet(kind: int, body: bytes = b"") -> bytes:
    """A request."""
    return HEADER.pack(b"\0REQ", kind, len(body)) + body


def connect(port: int) -> socket.socket:
    """A connection of the load."""
    peer = socket.create_connection(("127.0.0.1", port), 10)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


class Peer:
    """A connection that answers packets as they come."""

    def __init__(self, port: int, answer: Callable[["Peer", int, bytes], bytes]) -> None:
        self.socket = connect(port)
        self.answer = answer
        self.rest = b""

    def readable(self) -> None:
        data = self.rest + self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
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


class Load:
    """Foreground round trips through `workers` workers by `clients` clients with `window` jobs each in flight."""

    def __init__(self, port: int, function: bytes, clients: int, window: int, workers: int) -> None:
        self.function = function
        self.window = window
        self.done = self.sent = self.wanted = self.asleep = 0
        self.selector = selectors.DefaultSelector()
        self.workers = [self._add(Peer(port, self._work)) for _ in range(workers)]
        self.clients = [self._add(Peer(port, self._consume)) for _ in range(clients)]
        for worker in self.workers:
            worker.socket.sendall(packet(CAN_DO, function) + packet(GRAB))
        while self.asleep < workers:
            self._step()

    def run(self, jobs: int) -> float:
        """Jobs per second."""
        self.done = self.sent = 0
        self.wanted = jobs
        began = time.perf_counter()
        for client in self.clients:
            client.socket.sendall(b"".join(self._submit() for _ in range(self.window)))
        while self.done < jobs:
            self._step()
        return jobs / (time.perf_counter() - began)

    def close(self) -> None:
        for peer in (*self.workers, *self.clients):
            peer.socket.close()
        self.selector.close()

    def _add(self, peer: Peer) -> Peer:
        self.selector.register(peer.socket, selectors.EVENT_READ, peer)
        return peer

    def _step(self) -> None:
        ready = self.selector.select(30)
        if not ready:
            raise TimeoutError(f"nothing happened for 30 seconds; {self.done} of {self.wanted} jobs are done")
        for key, _ in ready:
            key.data.readable()

    def _submit(self) -> bytes:
        if self.sent >= self.wanted:
            return b""
        self.sent += 1
        return packet(SUBMIT, self.function + b"\0\0" + b"x" * 64)

    def _consume(self, peer: Peer, kind: int, body: bytes) -> bytes:
        if kind == ERROR:
            raise RuntimeError(body.decode("utf-8", "replace"))
        if kind != COMPLETE:
            return b""
        self.done += 1
        return self._submit()

    def _work(self, peer: Peer, kind: int, body: bytes) -> bytes:
        if kind == ASSIGN:
            handle, _, payload = body.split(b"\0", 2)
            return packet(COMPLETE, handle + b"\0" + payload) + packet(GRAB)
        if kind == NO_JOB:
            self.asleep += 1
            return packet(PRE_SLEEP)
        return packet(GRAB) if kind == NOOP else b""
