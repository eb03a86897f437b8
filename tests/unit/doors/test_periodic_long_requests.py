"""LOAD and DROP_FUNC of many jobs go in steps; others are served between them, and the answer comes at the end."""

from collections.abc import Iterator

import pytest

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.periodic.connection import PeriodicConnection
from geartrain.doors.periodic.door import Options, PeriodicDoor
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from geartrain.wire import periodic as wire
from tests.support.fake_loop import FakeLoop
from tests.support.transport import Transport
from tests.unit.doors.test_periodic_fuzz import NOW, Control

ADDRESS = parse("periodic://127.0.0.1:0")
MANY = wire.jobs([wire.PeriodicJob(b"f", b"%d" % number, b"", NOW + 9, 0, 0) for number in range(1000)])


class Scene:
    def __init__(self, loop: FakeLoop) -> None:
        self.loop = loop
        self.engine = Engine()
        tick_loop = TickLoop(loop, self.engine, lambda: float(NOW))
        self.door = PeriodicDoor(tick_loop, Limits(turn=0.0), Options(), Control(), {})  # a turn is one step

    def connect(self) -> tuple[PeriodicConnection, Transport]:
        connection, transport = self.door.connect(ADDRESS), Transport()
        connection.connection_made(transport)  # type: ignore[arg-type]
        self.send(connection, bytes([wire.CLIENT]))
        transport.written = b""
        return connection, transport

    def send(self, connection: PeriodicConnection, payload: bytes) -> None:
        connection.data_received(wire.frame(wire.TODAY, wire.REQUEST, payload))
        self.loop.pass_time(0.0)

    def run(self) -> None:
        for _ in range(200):
            self.loop.pass_time(0.0)


def answered(transport: Transport, message_id: bytes, word: int) -> bool:
    return wire.frame(wire.TODAY, wire.RESPONSE, message_id + bytes([word])) in transport.written


@pytest.fixture
def scene() -> Iterator[Scene]:
    loop = FakeLoop()
    yield Scene(loop)
    loop.close()


def test_load(scene: Scene) -> None:
    loading, output = scene.connect()
    other, other_output = scene.connect()
    scene.send(loading, b"0001" + bytes([wire.LOAD]) + MANY)
    scene.send(other, b"0002" + bytes([wire.PING]))
    assert len(scene.engine.jobs) < 1000
    assert answered(other_output, b"0002", wire.PONG), "another peer is served meanwhile"
    scene.send(loading, b"0003" + bytes([wire.PING]))
    assert output.written == b"", "the peer's own next request waits"
    scene.run()
    assert len(scene.engine.jobs) == 1000
    assert answered(output, b"0001", wire.SUCCESS)
    assert answered(output, b"0003", wire.PONG)


def test_load_of_a_list_that_is_cut_off_submits_nothing(scene: Scene) -> None:
    loading, output = scene.connect()
    scene.send(loading, b"0001" + bytes([wire.LOAD]) + MANY[:-1])
    scene.run()
    assert output.closed
    assert not len(scene.engine.jobs)


def test_load_says_that_a_job_was_refused(scene: Scene) -> None:
    scene.engine.limit(b"f", 10, 10, 10)
    loading, output = scene.connect()
    scene.send(loading, b"0001" + bytes([wire.LOAD]) + MANY)
    scene.run()
    assert answered(output, b"0001", wire.UNKNOWN)
    assert len(scene.engine.jobs) == 10


def test_load_goes_on_without_its_peer(scene: Scene) -> None:
    loading, _ = scene.connect()
    scene.send(loading, b"0001" + bytes([wire.LOAD]) + MANY)
    loading.connection_lost(None)
    scene.run()
    assert len(scene.engine.jobs) == 1000


def test_drop(scene: Scene) -> None:
    for number in range(5000):
        scene.engine.submit(b"f", b"%d" % number, background=True)
    dropping, output = scene.connect()
    other, _ = scene.connect()
    scene.send(dropping, b"0001" + bytes([wire.DROP_FUNC]) + wire.short(b"f"))
    assert 0 < len(scene.engine.jobs) < 5000
    late = wire.PeriodicJob(b"f", b"late", b"", 0, 0, 0)
    scene.send(other, b"0002" + bytes([wire.SUBMIT_JOB]) + wire.job(late))
    assert not output.written
    scene.run()
    assert [job.unique for job in scene.engine.jobs.values()] == [b"late"]
    assert answered(output, b"0001", wire.SUCCESS)
