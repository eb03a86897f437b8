"""Lists that are made in steps: they wait for their reader, and what they gather has a bound."""

from collections.abc import Iterator

import pytest

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.doors.periodic.door import Options, PeriodicDoor
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from geartrain.wire import periodic as wire
from tests.support import gearmonkey_door
from tests.support.fake_loop import FakeLoop
from tests.support.transport import PausingTransport
from tests.unit.doors.test_periodic_fuzz import NOW, Control

PAYLOAD = bytes(HIGH_WATER // 8)
JOBS = 100
LONG_NAME = b"f" * 500


class Scene:
    def __init__(self, loop: FakeLoop) -> None:
        self.loop = loop
        self.engine = Engine()
        self.door = PeriodicDoor(TickLoop(loop, self.engine, lambda: float(NOW)), Limits(), Options(), Control(), {})

    def connect(self, dialect: wire.Dialect) -> PausingTransport:
        connection = self.door.connect(parse("periodic://127.0.0.1:0"))
        peer = PausingTransport(connection)
        connection.connection_made(peer)  # type: ignore[arg-type]
        self.send(peer, dialect, bytes([wire.CLIENT]))
        peer.written = b""
        return peer

    def send(self, peer: PausingTransport, dialect: wire.Dialect, payload: bytes) -> None:
        peer.protocol.data_received(wire.frame(dialect, wire.REQUEST, payload))
        self.run()

    def run(self) -> None:
        for _ in range(300):
            self.loop.pass_time(0.0)


@pytest.fixture
def scene() -> Iterator[Scene]:
    loop = FakeLoop()
    yield Scene(loop)
    loop.close()


@pytest.mark.parametrize("dialect", [wire.TODAY, wire.DOCUMENT], ids=["today", "document"])
def test_a_dump_waits_for_its_reader(scene: Scene, dialect: wire.Dialect) -> None:
    jobs = [wire.PeriodicJob(b"f", b"%d" % number, PAYLOAD, NOW + 9, 0, 0) for number in range(JOBS)]
    for job in jobs:
        scene.engine.submit(job.function, job.name, job.payload, background=True, run_at=NOW + 9)
    peer = scene.connect(dialect)
    peer.full = True
    scene.send(peer, dialect, b"0001" + bytes([wire.DUMP]))
    assert 0 < len(peer.written) <= HIGH_WATER + 2 * len(PAYLOAD)
    peer.drain()
    scene.run()
    assert peer.written == wire.frame(dialect, wire.RESPONSE, b"0001" + dialect.data + wire.jobs(jobs))


@pytest.mark.parametrize("command", [wire.DUMP, wire.STATUS])
def test_a_list_above_the_write_limit_is_refused(scene: Scene, command: int, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(JOBS):
        scene.engine.submit(b"%d" % number + LONG_NAME[:200], b"", LONG_NAME, background=True)
    peer = scene.connect(wire.TODAY)
    scene.door.limits.write_limit = JOBS * 100
    scene.send(peer, wire.TODAY, b"0001" + bytes([command]))
    assert peer.written == wire.frame(wire.TODAY, wire.RESPONSE, b"0001" + bytes([wire.UNKNOWN]))
    assert [record.message for record in caplog.records] == ["request refused"]
    assert not peer.closed


def test_keys_wait_for_their_reader() -> None:
    with gearmonkey_door.opened() as bench:
        for number in range(2000):
            bench.engine.submit(b"%d" % number + LONG_NAME, background=True)
        peer = bench.peer()
        peer.transport.full = True
        peer.ask("KEYS *")
        for _ in range(100):
            bench.turn()
        assert 0 < len(peer.transport.written) <= 2 * HIGH_WATER
        peer.transport.drain()
        for _ in range(100):
            bench.turn()
        assert peer.transport.written.startswith(b"*6000\r\n")
        assert peer.transport.written.count(b"$") == 6000


def test_keys_stop_at_their_limit() -> None:
    with gearmonkey_door.opened() as bench:
        for number in range(4000):
            bench.engine.submit(b"%d" % number, background=True)
        peer = bench.peer()
        peer.ask("KEYS *")
        for _ in range(100):
            bench.turn()
        assert peer.transport.written.startswith(b"*10000\r\n")
        assert peer.transport.written.count(b"$") == 10_000
