"""The GearMonkey door without sockets: peers whose bytes are handed over, and time that passes when it is told to."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
from geartrain.doors.gearmonkey.door import GearmonkeyDoor, Options
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import Policy
from geartrain.model import Record
from geartrain.runtime.tick import TickLoop
from geartrain.wire import resp
from tests.support.fake_loop import FakeLoop
from tests.support.transport import PausingTransport

GRACE = 60.0


class Archive:
    """Has no records."""

    async def result(self, record: Record) -> bytes:
        return record.result

    async def find(self, handle: bytes) -> Record | None:
        return None


class Bench:
    """A door, its engine and the loop."""

    def __init__(
        self,
        loop: FakeLoop,
        max_attempts: int,
        limits: Limits,
        saved: Mapping[str, bytes],
        restored: Iterable[LiveJob],
        journal: Journal | None,
    ) -> None:
        self.loop = loop
        self.now = 1_000_000.0
        self.engine = Engine(Policy(max_attempts=max_attempts), handle_prefix=b"H:t", journal=journal)
        for job in restored:
            self.engine.restore(job)
        self.tick_loop = TickLoop(loop, self.engine, lambda: self.now)
        self.door = GearmonkeyDoor(self.tick_loop, limits, Options("test", GRACE), Archive(), saved)

    def turn(self) -> None:
        """Let the loop come round, so that everything is flushed."""
        for _ in range(2):
            self.loop.pass_time(0)

    def pass_time(self, seconds: float) -> None:
        """Move both clocks."""
        self.now += seconds
        self.loop.pass_time(seconds)
        self.turn()

    def peer(self) -> "DoorPeer":
        return DoorPeer(self)

    def ask(self, line: str) -> bytes:
        """The answer to a command that has a connection to itself."""
        peer = self.peer()
        try:
            return peer.ask(line)
        finally:
            peer.close()

    def submit(self, function: str = "f", payload: str = "x", queue: str = "normal") -> int:
        """Submit a job as the document says, and return its id."""
        number = int(self.ask(f"INCR uid:{function}")[1:])
        self.ask(f"HMSET job:{function}:{number} status idle input {payload}")
        self.ask(f"LPUSH queue:{function}:{queue} {number}")
        return number


class DoorPeer:
    """One connection."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.connection: GearmonkeyConnection = bench.door.connect(parse("gearmonkey://127.0.0.1"))
        self.transport = PausingTransport(self.connection)
        transport: Any = self.transport
        self.connection.connection_made(transport)

    def send(self, data: bytes) -> bytes:
        """Hand these bytes over; what the server has written then."""
        before = len(self.transport.written)
        self.connection.data_received(data)
        self.bench.turn()
        return self.transport.written[before:]

    def ask(self, *lines: str) -> bytes:
        """The answers to these commands, which arrive together; words are separated by spaces."""
        return self.send(b"".join(resp.request(*line.encode().split(b" ")) for line in lines))

    def close(self) -> None:
        self.connection.connection_lost(None)
        self.bench.turn()


@contextlib.contextmanager
def opened(
    max_attempts: int = 10,
    limits: Limits | None = None,
    saved: Mapping[str, bytes] | None = None,
    restored: Iterable[LiveJob] = (),
    journal: Journal | None = None,
) -> Iterator[Bench]:
    """A door in a loop of its own."""
    loop = FakeLoop()
    bench = Bench(loop, max_attempts, limits or Limits(), saved or {}, restored, journal)
    try:
        yield bench
    finally:
        bench.door.close()
        bench.tick_loop.close()
        loop.close()
