"""Anything at all is sent to the draft's door, by several peers at once; nothing may break it."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.doors.connection import Connection
from geartrain.doors.door import Door
from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import QUEUED, RUNNING
from geartrain.engine.policy import Policy
from geartrain.runtime.tick import TickLoop
from geartrain.wire import danga as wire
from geartrain.wire import gearman as gearman_wire
from tests.support.danga_door import made, open_peer, settle
from tests.support.examples import examples
from tests.support.transport import PausingTransport

NAMES = st.sampled_from([b"f", b"g", b"\xff"])
KEYS = st.sampled_from([b"", b"", b"k", b"-"])
HANDLES = st.integers(1, 6).map(lambda n: b"H:t:%d" % n) | st.sampled_from([b"", b"H:t:old", b"H:t:old\0", b"?"])
WORDS = st.sampled_from([0, 1, 100, 2**32 - 1])
PAYLOADS = st.binary(max_size=20)
CREATIONS = st.builds(wire.job_create_req, NAMES, KEYS, st.integers(0, 2), PAYLOADS)
STATUSES = st.builds(wire.job_status_announce, WORDS, WORDS, WORDS)
COMPLETIONS = st.builds(wire.job_complete_announce, st.sampled_from([0, 0, 1, 255]), PAYLOADS)
OFFERS = st.lists(NAMES, max_size=3).map(wire.worker_connect)
# What workers and applications mostly say. An announcement without a job ends a connection, so it mostly comes
# together with the question for one.
WORKERS_WORDS = st.one_of(
    OFFERS,
    st.just(wire.worker_sleep()),
    st.just(wire.job_assign_req()),
    STATUSES.map(lambda status: wire.job_assign_req() + status),
    COMPLETIONS.map(lambda completion: wire.job_assign_req() + completion),
    COMPLETIONS,
)
APPLICATIONS_WORDS = st.one_of(
    CREATIONS, CREATIONS, HANDLES.map(wire.job_status_req), HANDLES.map(wire.job_complete_req)
)
ODD = st.one_of(
    STATUSES,
    st.just(wire.worker_disconnect()),
    st.builds(lambda kind, body: b"\0REQ%c\0\0\0%c%b" % (kind, len(body), body), st.integers(0, 14), PAYLOADS),
    st.binary(max_size=20),
    st.sampled_from([b"BYE", b"CANCEL"]),  # a peer is gone without a word; an operator cancels a job
)
WORKERS = (0, 1)
WORKING = st.tuples(st.sampled_from(WORKERS), WORKERS_WORDS, st.integers(0, 30))
APPLYING = st.tuples(st.integers(2, 3), APPLICATIONS_WORDS, st.integers(0, 30))
ANYTHING = st.tuples(st.integers(0, 3), WORKERS_WORDS | APPLICATIONS_WORDS | ODD, st.integers(0, 30))
STEPS = st.lists(WORKING | WORKING | APPLYING | APPLYING | ANYTHING, min_size=5, max_size=80)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@examples(150)
@given(steps=STEPS, shared=st.booleans())
def test_nothing_breaks_the_door(
    loop: asyncio.AbstractEventLoop, steps: list[tuple[int, bytes, int]], shared: bool
) -> None:
    now = 1_000_000.0
    engine = Engine(Policy(max_attempts=2), b"H:t")
    tick_loop = TickLoop(loop, engine, lambda: now)
    door = made(tick_loop, shared)
    faults = Faults()
    peers = [newcomer(door, number) for number in range(4)]
    for number, step, at in steps:
        now += 0.001
        peer = peers[number]
        others = [other for other in peers if other is not peer and not other.closed]
        if step == b"BYE" or peer.closed:
            peer.protocol.connection_lost(None)
            peers[number] = newcomer(door, number)
        elif step == b"CANCEL":
            for job in list(engine.jobs.values())[:1]:
                engine.cancel(job)
        else:
            for piece in (step[:at], step[at:]):
                if piece:
                    peer.protocol.data_received(piece)
        settle(loop)
        assert not any(other.closed for other in others), "a peer suffered for another's bytes"
        check_books(engine)
    assert len(door.connections) == 4
    for peer in peers:
        check_answers(peer.written)
        peer.protocol.connection_lost(None)
    settle(loop)
    engine.tick(now + 1)
    assert engine.running == 0
    assert all(job.background for job in engine.jobs.values()), "a foreground job outlived its application"
    assert all(function.workers == 0 for function in engine.functions.values())
    assert not engine.crews
    assert not door.connections
    door.close()
    tick_loop.close()
    faults.check()


def newcomer(door: Door, number: int) -> PausingTransport:
    peer = open_peer(door)
    if number in WORKERS:
        peer.protocol.data_received(wire.worker_connect([b"f", b"g"]))
    return peer


class Faults(logging.Handler):
    """Bugs of ours are logged with a traceback; here they fail the test."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: list[str] = []
        logging.getLogger("geartrain.doors").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(f"{record.getMessage()}: {record.exc_info}")

    def check(self) -> None:
        logging.getLogger("geartrain.doors").removeHandler(self)
        assert not self._found


def check_books(engine: Engine) -> None:
    """The counters say what a recount says, and nobody has two jobs."""
    owners: list[object] = []
    for function in engine.functions.values():
        jobs = [job for job in engine.jobs.values() if job.function == function.name]
        assert function.queued == sum(job.state is QUEUED for job in jobs)
        assert function.running == sum(job.state is RUNNING for job in jobs)
        owners += [job.owner for job in jobs if job.owner is not None]
    assert len(owners) == len(set(owners)), "a worker has more than one task at a time"


def check_answers(written: bytes) -> None:
    """What a peer was sent is packets of one protocol, whole ones."""
    if written.startswith(b"\0RES\0\0\0") and written[4:9] != bytes(5):
        size = 0
        while size < len(written):
            size += 12 + int.from_bytes(written[size + 8 : size + 12], "big")
        assert size == len(written)
        return
    if not written.startswith(b"\0RES"):
        return  # the Gearman door's answer to text
    reader = wire.Reader(magic=wire.RESPONSE)
    reader.feed(written)
    while reader.next() != wire.MORE:
        pass
    assert not reader.incomplete_size


def test_a_gearman_peer_at_a_shared_door(loop: asyncio.AbstractEventLoop) -> None:
    tick_loop = TickLoop(loop, Engine(handle_prefix=b"H:t"), lambda: 1.0)
    door = made(tick_loop, shared=True)
    echo = gearman_wire.request(gearman_wire.ECHO_REQ, b"hello")
    for first in (echo, b"version\n"):
        for at in range(1, len(first)):
            peer = open_peer(door)
            peer.protocol.data_received(first[:at])
            peer.protocol.data_received(first[at:])
            settle(loop)
            assert peer.written in (gearman_wire.response(gearman_wire.ECHO_RES, b"hello"), b"OK test\n")
            [connection] = door.connections
            assert connection is peer.protocol
            peer.protocol.connection_lost(None)
    door.close()
    tick_loop.close()


def test_a_peer_of_the_draft_at_a_shared_door(loop: asyncio.AbstractEventLoop) -> None:
    tick_loop = TickLoop(loop, Engine(handle_prefix=b"H:t"), lambda: 1.0)
    door = made(tick_loop, shared=True)
    for at in range(1, 9):
        peer = open_peer(door)
        for piece in (wire.job_assign_req()[:at], wire.job_assign_req()[at:]):
            peer.protocol.data_received(piece)
        settle(loop)
        assert peer.written == wire.NO_JOB_PACKET
        peer.protocol.connection_lost(None)
    door.close()
    tick_loop.close()


def test_a_newcomer_that_stalls_is_refused(loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture) -> None:
    tick_loop = TickLoop(loop, Engine(), lambda: 1.0)
    door = made(tick_loop, shared=True)
    silent, stalling = open_peer(door), open_peer(door)
    stalling.protocol.data_received(b"\0RE")
    connections: list[Connection] = [silent.protocol, stalling.protocol]
    for _ in range(3):
        for connection in connections:
            connection.check_progress(2)
    assert (silent.closed, stalling.closed) == (False, True)
    assert [record.fields["why"] for record in caplog.records] == [
        "TIMEOUT: no more of a packet arrived for 60 seconds"
    ]  # type: ignore[attr-defined]
    for connection in connections:
        connection.connection_lost(None)
    door.close()
    tick_loop.close()
