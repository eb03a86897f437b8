"""Lingering grabs: when the answer to a grab that finds no job is held back, and for how long."""

from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.gearman.connection import GearmanConnection
from geartrain.doors.gearman.door import GearmanDoor, Options
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from geartrain.wire import gearman as wire
from tests.support.fake_loop import FakeLoop
from tests.support.transport import Transport

LINGER = 0.01
GRAB = wire.request(wire.GRAB_JOB)


class Control:
    log_level_name = "ERROR"

    def shutdown(self, graceful: bool) -> None: ...

    def not_ready(self) -> str:
        return ""


class Bench:
    """A Gearman door with a clock that is moved by hand, and a client."""

    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.now = 1_000_000.0
        self.engine = Engine(handle_prefix=b"H:t")
        self.tick_loop = TickLoop(self.loop, self.engine, lambda: self.now)
        self.door = GearmanDoor(self.tick_loop, Limits(), Options("test", linger=LINGER), Control())
        self.client = Peer(self)

    def submit(self) -> bytes:
        """Submit a background job, and return its handle."""
        return self.client.send(wire.request(wire.SUBMIT_JOB_BG, b"f", b"", b"x"))[12:]

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.loop.pass_time(seconds)
        self.loop.pass_time(0)

    def close(self) -> None:
        self.door.close()
        self.tick_loop.close()
        self.loop.close()


class Peer:
    """One connection."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.connection: GearmanConnection = bench.door.connect(parse("gearman://127.0.0.1"))
        self.transport = Transport()
        transport: Any = self.transport
        self.connection.connection_made(transport)

    def send(self, data: bytes) -> bytes:
        """What the server answers at once."""
        self.connection.data_received(data)
        self.bench.pass_time(0)
        return self.heard()

    def heard(self) -> bytes:
        """What has been sent to it since it was asked last."""
        written, self.transport.written = self.transport.written, b""
        return written


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


@pytest.fixture
def worker(bench: Bench) -> Peer:
    """It has just run a job, so that its crew is busy."""
    worker = Peer(bench)
    handle = bench.submit()
    assert handle in worker.send(wire.request(wire.CAN_DO, b"f") + GRAB)
    worker.send(wire.request(wire.WORK_COMPLETE, handle, b""))
    return worker


def test_a_crew_that_had_no_job_lately_does_not_linger(bench: Bench) -> None:
    assert Peer(bench).send(wire.request(wire.CAN_DO, b"f") + GRAB) == wire.NO_JOB_PACKET


def test_a_grab_is_answered_with_a_job_that_comes_in_time(bench: Bench, worker: Peer) -> None:
    assert worker.send(GRAB) == b""
    bench.pass_time(LINGER / 2)
    handle = bench.submit()
    assert worker.heard() == wire.assignment(wire.JOB_ASSIGN, handle, b"f", b"x")
    bench.pass_time(10 * LINGER)
    assert worker.heard() == b""


def test_a_grab_is_answered_when_its_time_is_over(bench: Bench, worker: Peer) -> None:
    assert worker.send(GRAB) == b""
    bench.pass_time(LINGER / 2)
    assert worker.heard() == b""
    bench.pass_time(LINGER / 2)
    assert worker.heard() == wire.NO_JOB_PACKET
    bench.submit()
    assert worker.heard() == b"", "it neither sleeps nor grabs"


def test_a_second_grab_lingers_as_long_as_the_first(bench: Bench, worker: Peer) -> None:
    """The timer that the first one has set is due in between."""
    assert worker.send(GRAB) == b""
    bench.pass_time(LINGER * 0.6)
    handle = bench.submit()
    assert worker.send(wire.request(wire.WORK_COMPLETE, handle, b"") + GRAB).endswith(b"f\0x")
    bench.pass_time(LINGER * 0.6)
    assert worker.heard() == b""
    bench.pass_time(LINGER)
    assert worker.heard() == wire.NO_JOB_PACKET


def test_every_grab_of_a_worker_may_linger(bench: Bench, worker: Peer) -> None:
    for _ in range(3):
        assert worker.send(GRAB) == b""
        bench.pass_time(LINGER)
        assert worker.heard() == wire.NO_JOB_PACKET


def test_workers_that_begin_at_different_times_are_answered_in_order(bench: Bench, worker: Peer) -> None:
    other = Peer(bench)
    assert worker.send(GRAB) == b""
    bench.pass_time(LINGER / 2)
    assert other.send(wire.request(wire.CAN_DO, b"f") + GRAB) == b""
    bench.pass_time(LINGER / 2)
    assert (worker.heard(), other.heard()) == (wire.NO_JOB_PACKET, b"")
    bench.pass_time(LINGER)
    assert (worker.heard(), other.heard()) == (b"", wire.NO_JOB_PACKET)


def test_a_grab_that_lingers_goes_before_a_worker_that_sleeps(bench: Bench, worker: Peer) -> None:
    sleeper = Peer(bench)
    assert sleeper.send(wire.request(wire.CAN_DO, b"f") + wire.request(wire.PRE_SLEEP)) == b""
    assert worker.send(GRAB) == b""
    handle = bench.submit()
    assert (worker.heard(), sleeper.heard()) == (wire.assignment(wire.JOB_ASSIGN, handle, b"f", b"x"), b"")
    bench.submit()
    assert (worker.heard(), sleeper.heard()) == (b"", wire.NOOP_PACKET)


def test_a_worker_that_leaves_while_it_lingers_is_forgotten(bench: Bench, worker: Peer) -> None:
    assert worker.send(GRAB) == b""
    worker.connection.connection_lost(None)
    bench.pass_time(LINGER)
    assert len(bench.tick_loop.timers) == 0


@pytest.mark.parametrize("handle", [b"H:t:2x", b"H:t:", b"H:t:22", b"h:t:2", b""])
def test_the_result_of_another_job_does_not_complete_the_one_that_runs(
    bench: Bench, worker: Peer, handle: bytes
) -> None:
    assert bench.submit() == b"H:t:2"
    worker.send(GRAB)
    assert b"JOB_NOT_FOUND" in worker.send(wire.request(wire.WORK_COMPLETE, handle, b"result"))
    assert worker.send(wire.request(wire.WORK_COMPLETE, b"H:t:2", b"re\0sult")) == b""
    assert len(bench.engine.jobs) == 0


def test_a_result_without_the_nul_is_empty(bench: Bench, worker: Peer) -> None:
    """As Perl's workers send it."""
    handle = bench.submit()
    worker.send(GRAB)
    assert worker.send(wire.request(wire.WORK_COMPLETE, handle)) == b""
    assert len(bench.engine.jobs) == 0
