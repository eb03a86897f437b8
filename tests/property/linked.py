"""Engines that are linked as servers are, with links that are played: frames wait until they are delivered, or are cut.

All but the connection is the real thing: `PeerDoor`, `PeerLink`, lending, borrowing and offers.
"""

import heapq
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from geartrain.doors.door import Limits
from geartrain.doors.peer.connection import PeerConnection
from geartrain.doors.peer.door import Options, PeerDoor
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import Policy
from geartrain.engine.worker import Worker
from geartrain.runtime.durability import Durability
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import Timers
from geartrain.wire import peer as wire

NODE_BITS = 32
GRACE = 2.0


class PlayedTimers:
    """Timers by a clock that is moved by hand."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._heap: list[tuple[float, int, list[Callable[[], object] | None]]] = []
        self._serial = 0

    def call_later(self, seconds: float, callback: Callable[[], object]) -> "PlayedCall":
        self._serial += 1
        cell: list[Callable[[], object] | None] = [callback]
        heapq.heappush(self._heap, (self._world.now + seconds, self._serial, cell))
        return PlayedCall(cell)

    def fire(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            callback = heapq.heappop(self._heap)[2][0]
            if callback is not None:
                callback()


class PlayedCall:
    """One call; see `DelayedCall`."""

    def __init__(self, cell: list[Callable[[], object] | None]) -> None:
        self._cell = cell

    def cancel(self) -> None:
        self._cell[0] = None


class Books(Journal):
    """What became of the background jobs of one server."""

    def __init__(self) -> None:
        self.accepted_jobs: set[int] = set()
        self.ended: dict[int, str] = {}

    def accepted(self, job: LiveJob) -> None:
        assert job.id not in self.accepted_jobs
        self.accepted_jobs.add(job.id)

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        assert job.id in self.accepted_jobs, "a borrowed job is not the borrower's to end"
        assert job.id not in self.ended, "a job ends once"
        self.ended[job.id] = job.state.name


class PlayedTickLoop:
    """The part of a TickLoop that links use."""

    def __init__(self, world: "World", engine: Engine) -> None:
        self.engine = engine
        self.durability = Durability()
        self.timers = cast(Timers, PlayedTimers(world))
        self.before_flush: list[Callable[[], None]] = []
        self.loop = SimpleNamespace(time=lambda: world.now)

    def begin_tick(self) -> Engine:
        return self.engine


class PlayedConnection:
    """One end of a connection: what is written waits in its channel."""

    def __init__(self) -> None:
        self.channel: deque[bytes] = deque()
        self.other: PlayedConnection | None = None

    def write(self, data: bytes) -> None:
        self.channel.append(data)

    def drop(self, why: str) -> None:
        raise AssertionError("no link is opened twice here")


class PlayedWorker(Worker):
    """A worker that takes a job when it is told to."""

    __slots__ = ("server", "woken")

    def __init__(self, server: "PlayedServer") -> None:
        super().__init__("test", b"worker")
        self.server = server
        self.woken = False

    def wake(self) -> None:
        self.woken = True


class PlayedServer:
    """An engine with its peer door."""

    def __init__(self, world: "World", number: int) -> None:
        self.books = Books()
        node = (1 << 20) + number
        self.node = node
        self.engine = Engine(Policy(max_attempts=0), b"H:cluster", (node << NODE_BITS) + 1, self.books)
        self.engine.now = world.now
        self.tick_loop = PlayedTickLoop(world, self.engine)
        options = Options(node, f"server {number}", b"secret", GRACE, cast(Any, None))
        self.door = PeerDoor(cast(TickLoop, self.tick_loop), Limits(), options)
        self.workers: list[PlayedWorker] = []

    def end_tick(self) -> None:
        for call in self.tick_loop.before_flush:
            call()

    def distant_workers(self) -> list[Worker]:
        """The workers that stand for other servers."""
        links = self.door.links.values()
        return [worker for link in links for worker in (*link.lending.crews.values(), link.lending.holder)]


class World:
    """Some servers, and a link between each two of them."""

    def __init__(self, servers: int) -> None:
        self.now = 1000.0
        self.servers = [PlayedServer(self, number) for number in range(servers)]
        self.connections: dict[tuple[int, int], PlayedConnection] = {}  # by the numbers of sender and receiver
        self.readers: dict[tuple[int, int], wire.Reader] = {}
        for one in range(servers):
            for other in range(one):
                self.connect(one, other)

    def connect(self, one: int, other: int) -> None:
        """Open the link between two servers."""
        ends = PlayedConnection(), PlayedConnection()
        for (sender, receiver), end in zip(((one, other), (other, one)), ends, strict=True):
            self.connections[sender, receiver] = end
            self.readers[sender, receiver] = wire.Reader(1 << 20)
        for (sender, receiver), end in zip(((one, other), (other, one)), ends, strict=True):
            server, peer = self.servers[sender], self.servers[receiver]
            server.door.link(peer.node, peer.door.options.name).open(cast(PeerConnection, end))
            server.end_tick()

    def cut(self, one: int, other: int) -> None:
        """Lose the link, with all that is under way."""
        for sender, receiver in ((one, other), (other, one)):
            end = self.connections.pop((sender, receiver), None)
            if end is not None:
                link = self.servers[sender].door.links[self.servers[receiver].node]
                link.lose(cast(PeerConnection, end))
                self.servers[sender].end_tick()

    def deliver(self, sender: int, receiver: int, most: int = 1_000_000) -> bool:
        """Hand over frames of one direction; whether there were any."""
        end = self.connections.get((sender, receiver))
        delivered = False
        while end is not None and end.channel and most and self.connections.get((sender, receiver)) is end:
            most -= 1
            delivered = True
            reader, server = self.readers[sender, receiver], self.servers[receiver]
            reader.feed(end.channel.popleft())
            assert reader.next()
            frame = reader.frame()
            server.door.links[self.servers[sender].node].handle(frame)
            assert not reader.next()
            server.end_tick()
        return delivered

    def deliver_all(self) -> None:
        """Hand over everything, and what it causes."""
        delivered = True
        while delivered:
            delivered = False
            for pair in list(self.connections):
                delivered |= self.deliver(*pair)

    def pass_time(self, seconds: float) -> None:
        """Move the clock of all servers."""
        self.now += seconds
        for server in self.servers:
            server.engine.tick(self.now)
            server.tick_loop.timers.fire(self.now)  # type: ignore[attr-defined]
            for link in server.door.links.values():
                link.lending.retry()
            server.end_tick()
