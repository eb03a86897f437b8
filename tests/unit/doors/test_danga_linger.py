"""A worker of the draft that asks for a job where jobs keep coming: "no job" is held back for a moment."""

from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.address import parse
from geartrain.doors.danga.connection import DangaConnection
from geartrain.doors.danga.door import DangaDoor
from geartrain.doors.door import Limits
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from geartrain.wire import danga as wire
from tests.support.danga_door import OneRecord
from tests.support.fake_loop import FakeLoop
from tests.support.transport import Transport

LINGER = 0.01
ASK = wire.job_assign_req()
JOB = wire.job_assign_res(b"f", b"x")


class Bench:
    """A door with a clock that is moved by hand, and an application."""

    def __init__(self, linger: float = LINGER) -> None:
        self.loop = FakeLoop()
        self.now = 1_000_000.0
        self.engine = Engine(handle_prefix=b"H:t")
        self.tick_loop = TickLoop(self.loop, self.engine, lambda: self.now)
        self.door = DangaDoor(self.tick_loop, Limits(), OneRecord(), linger)
        self.application = Peer(self)

    def submit(self) -> None:
        """Submit a background job."""
        self.application.send(wire.job_create_req(b"f", b"", wire.ASYNC_HANDLE, b"x"))

    def busy_worker(self) -> "Peer":
        """A worker that has just run a job."""
        worker = Peer(self)
        self.submit()
        assert worker.send(wire.worker_connect([b"f"]) + ASK) == JOB
        assert worker.send(wire.job_complete_announce(0)) == b""
        return worker

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
        self.connection: DangaConnection = bench.door.connect(parse("danga://127.0.0.1"))
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
    return bench.busy_worker()


def test_a_crew_that_had_no_job_lately_does_not_linger(bench: Bench) -> None:
    assert Peer(bench).send(wire.worker_connect([b"f"]) + ASK) == wire.NO_JOB_PACKET


def test_no_request_lingers_if_that_is_switched_off() -> None:
    bench = Bench(linger=0.0)
    assert bench.busy_worker().send(ASK) == wire.NO_JOB_PACKET
    bench.close()


def test_a_request_is_answered_with_a_job_that_comes_in_time(bench: Bench, worker: Peer) -> None:
    assert worker.send(ASK) == b""
    bench.pass_time(LINGER / 2)
    bench.submit()
    assert worker.heard() == JOB
    bench.pass_time(10 * LINGER)
    assert worker.heard() == b""
    assert worker.send(wire.job_complete_announce(0)) == b""
    assert len(bench.engine.jobs) == 0


def test_a_request_is_answered_when_its_time_is_over(bench: Bench, worker: Peer) -> None:
    assert worker.send(ASK) == b""
    bench.pass_time(LINGER / 2)
    assert worker.heard() == b""
    bench.pass_time(LINGER / 2)
    assert worker.heard() == wire.NO_JOB_PACKET
    bench.submit()
    assert worker.heard() == b"", "it neither sleeps nor asks"


def test_a_worker_that_goes_to_sleep_instead_is_told_that_there_is_no_job(bench: Bench, worker: Peer) -> None:
    assert worker.send(ASK) == b""
    assert worker.send(wire.worker_sleep()) == wire.NO_JOB_PACKET
    bench.submit()
    assert worker.heard() == wire.NOOP_PACKET
    assert worker.send(ASK) == JOB


def test_an_application_on_the_same_connection_ends_it_too(bench: Bench, worker: Peer) -> None:
    assert worker.send(ASK) == b""
    answer = worker.send(wire.job_create_req(b"g", b"", wire.ASYNC_HANDLE, b"x"))
    assert answer.startswith(wire.NO_JOB_PACKET + wire.job_create_res(b"H:t:2")[:5])


def test_two_requests_at_once_are_answered_in_order(bench: Bench, worker: Peer) -> None:
    assert worker.send(ASK + ASK) == wire.NO_JOB_PACKET
    bench.pass_time(LINGER)
    assert worker.heard() == wire.NO_JOB_PACKET


def test_every_request_of_a_worker_may_linger(bench: Bench, worker: Peer) -> None:
    for _ in range(3):
        assert worker.send(ASK) == b""
        bench.pass_time(LINGER)
        assert worker.heard() == wire.NO_JOB_PACKET


def test_workers_that_begin_at_different_times_are_answered_in_order(bench: Bench, worker: Peer) -> None:
    other = Peer(bench)
    assert worker.send(ASK) == b""
    bench.pass_time(LINGER / 2)
    assert other.send(wire.worker_connect([b"f"]) + ASK) == b""
    bench.pass_time(LINGER / 2)
    assert (worker.heard(), other.heard()) == (wire.NO_JOB_PACKET, b"")
    bench.pass_time(LINGER)
    assert (worker.heard(), other.heard()) == (b"", wire.NO_JOB_PACKET)


@pytest.mark.parametrize("last_word", [b"", wire.worker_disconnect()], ids=["lost", "disconnects"])
def test_a_worker_that_leaves_while_it_lingers_is_forgotten(bench: Bench, worker: Peer, last_word: bytes) -> None:
    assert worker.send(ASK) == b""
    if last_word:
        worker.send(last_word)
    worker.connection.connection_lost(None)
    bench.submit()
    bench.pass_time(LINGER)
    assert len(bench.tick_loop.timers) == 0
    assert len(bench.engine.jobs) == 1
