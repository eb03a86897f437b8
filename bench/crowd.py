"""Connections of a load in one thread, whatever protocol they speak, as cheap as Python can have them.

A load that is busier than the server measures itself. So a client never takes its answers apart: it says the same
request again and again, counts the answers by the bytes that each of them has once and no payload has, and all that
came with one read is one addition and one write. Sockets block, with the kernel's own time limit: Python's costs
another system call for every read.
"""

import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Protocol

PAYLOAD = b"x" * 64  # has none of the bytes by which answers are counted
PATIENCE = 30  # seconds without anything is a failure
READ = 1 << 18


class Peer(Protocol):
    """One connection of a crowd."""

    socket: socket.socket

    def readable(self) -> None:
        """Something came in."""


class Load(Protocol):
    """Work that can be repeated."""

    @property
    def waits(self) -> list[float]:
        """Seconds that each request of the last run took, where they went one by one."""

    def run(self, jobs: int) -> float:
        """Do so many; jobs per second."""

    def close(self) -> None: ...


def connect(port: int) -> socket.socket:
    """A connection of the load."""
    peer = socket.create_connection(("127.0.0.1", port), PATIENCE)
    peer.settimeout(None)
    limit = struct.pack("ll", PATIENCE, 0)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def receive(peer: socket.socket) -> bytes:
    """What there is to read; it is an error if there never will be more."""
    data = peer.recv(READ)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


class Tally:
    """What all clients of a crowd have asked and heard."""

    __slots__ = ("done", "sent", "waits", "wanted")

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.start(0)

    def start(self, wanted: int) -> None:
        self.sent = self.done = 0
        self.wanted = wanted
        self.waits.clear()


class Asker:
    """A client that says the same request again for every answer, with `window` of them under way."""

    def __init__(
        self, port: int, tally: Tally, window: int, request: bytes, answer: bytes, refusals: tuple[bytes, ...]
    ) -> None:
        self.socket = connect(port)
        self.tally = tally
        self.window = window
        self.request = request
        self.answer = answer  # bytes that are in each answer once
        self.refusals = refusals  # and one of these is where the server says no
        self.rest = b""
        self.asked_at = 0.0

    def begin(self) -> None:
        """Ask for the first ones."""
        self._ask(self.window)

    def readable(self) -> None:
        data = self.rest + receive(self.socket)
        answered = data.count(self.answer)
        # One byte less than would be found again.
        self.rest = data[1 - len(self.answer) :] if len(self.answer) > 1 else b""
        if not answered:
            if any(refusal in data for refusal in self.refusals):
                raise RuntimeError(f"the server refused: {data[:200]!r}")
            return
        self.heard(answered)

    def heard(self, answered: int) -> None:
        """So many answers came at once."""
        self.tally.done += answered
        if self.window == 1:
            self.tally.waits.append(time.perf_counter() - self.asked_at)
        self._ask(answered)

    def say(self, count: int) -> None:
        """The request, so many times."""
        self.socket.sendall(self.request * count)

    def _ask(self, count: int) -> None:
        tally = self.tally
        count = min(count, tally.wanted - tally.sent)
        if count > 0:
            tally.sent += count
            if self.window == 1:
                self.asked_at = time.perf_counter()
            self.say(count)


class Crowd:
    """All connections of a load on one epoll; a run is over when its jobs are done."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.askers: list[Asker] = []
        self._peers: dict[int, Peer] = {}
        self._epoll = select.epoll()

    @property
    def waits(self) -> list[float]:
        return self.tally.waits

    def add(self, peer: Peer) -> None:
        self._peers[peer.socket.fileno()] = peer
        self._epoll.register(peer.socket.fileno(), select.EPOLLIN)

    def add_asker(self, asker: Asker) -> None:
        self.add(asker)
        self.askers.append(asker)

    def run(self, jobs: int) -> float:
        """Jobs per second."""
        tally = self.tally
        tally.start(jobs)
        began = time.perf_counter()
        self.begin()
        self.until(lambda: tally.done >= jobs)
        return jobs / (time.perf_counter() - began)

    def begin(self) -> None:
        """Set the work going."""
        for asker in self.askers:
            asker.begin()

    def until(self, over: Callable[[], bool]) -> None:
        """Let everybody answer until it is over."""
        peers, poll = self._peers, self._epoll.poll
        while not over():
            ready = poll(PATIENCE)
            if not ready:
                raise TimeoutError(f"nothing happened for {PATIENCE} seconds; {self.tally.done} jobs were done")
            for descriptor, _ in ready:
                peers[descriptor].readable()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.socket.close()
        self._epoll.close()
