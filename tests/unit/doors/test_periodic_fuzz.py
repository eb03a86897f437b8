"""Anything at all is sent to the Periodic door, by several peers in both dialects at once; nothing may break it."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.periodic import job_names
from geartrain.doors.periodic.connection import PeriodicConnection
from geartrain.doors.periodic.door import Options, PeriodicDoor
from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import QUEUED, RUNNING, SCHEDULED
from geartrain.runtime.tick import TickLoop
from geartrain.wire import periodic as wire
from tests.support.examples import examples
from tests.support.fake_loop import FakeLoop
from tests.support.transport import Transport

BYE = object()
NOTHING = st.just(b"")
PEERS = (  # dialect and kind of each
    (wire.DOCUMENT, wire.WORKER),
    (wire.TODAY, wire.WORKER),
    (wire.TODAY, wire.WORKER),
    (wire.DOCUMENT, wire.CLIENT),
    (wire.TODAY, wire.CLIENT),
)


class Control:
    """A server that cannot be stopped."""

    log_level_name = "ERROR"

    def shutdown(self, graceful: bool) -> None: ...


NOW = 1_000_000
FUNCTIONS = st.sampled_from([b"f", b"g", b""])
NAMES = st.sampled_from([b"", b"a", b"b", b"c", b"H:t:1", b"H:t:2"])
LOCKS = st.sampled_from([b"lock", b"lock", b"lock", b"other"])
TIMES = st.sampled_from([0, -1, NOW, NOW + 1, NOW + 2, NOW + 4000, 2**63 - 1, -(2**63)])
SMALL = st.sampled_from([0, 0, 1, -1, 2, 2**31 - 1, -(2**31)])
JOBS = st.builds(wire.PeriodicJob, FUNCTIONS, NAMES, st.binary(max_size=5), TIMES, SMALL, SMALL)
KEYS = st.sampled_from([b"timeout", b"lock-timeout", b"keepalive", b"max-patch", b"poll-delay", b"revert-delay", b"?"])
VALUES = st.sampled_from([0, 1, 2, 300, 2**32 - 1])
FEW = st.sampled_from([b"%04d" % number for number in range(4)])  # message ids, so that they meet
# Mostly the handle of a job that the peer has, by its place; otherwise a made-up one.
HANDLES = st.integers(0, 5) | st.tuples(FUNCTIONS, NAMES, st.integers(1, 6).map(lambda n: b"H:t:%d" % n))


def about(command: int, rest: st.SearchStrategy[bytes], before: st.SearchStrategy[bytes] = NOTHING) -> Any:
    """A command about a job, whose handle is put in when the dialect is known."""
    return st.tuples(st.just(command), before, HANDLES, rest)


def plain(command: int, arguments: st.SearchStrategy[bytes] = NOTHING) -> Any:
    return st.tuples(st.just(command), arguments, st.none(), NOTHING)


LATER = st.builds(
    wire.later, st.sampled_from([0, 1, -1, 5, 2**63 - 1, -(2**63)]), st.sampled_from([0, 1, -32768, 32767])
)
ACQUIRE = st.builds(
    lambda name, limit: wire.short(name) + wire.limit(limit), LOCKS, st.sampled_from([1, 1, 1, 2, 0, -1])
)
SAID = st.one_of(
    plain(wire.GRAB_JOB),
    plain(wire.GRAB_JOB),
    plain(wire.CAN_DO, FUNCTIONS.map(wire.short)),
    plain(wire.CAN_DO, FUNCTIONS.map(wire.short)),
    plain(wire.CANT_DO, FUNCTIONS.map(wire.short)),
    plain(wire.BROADCAST, FUNCTIONS.map(wire.short)),
    plain(wire.SUBMIT_JOB, JOBS.map(wire.job)),
    plain(wire.SUBMIT_JOB, JOBS.map(wire.job)),
    plain(wire.RUN_JOB, JOBS.map(wire.job)),
    plain(wire.RECV_DATA, JOBS.map(wire.job)),
    plain(wire.LOAD, st.lists(JOBS, max_size=3).map(wire.jobs)),
    plain(wire.REMOVE_JOB, st.builds(lambda f, n: wire.short(f) + wire.short(n), FUNCTIONS, NAMES)),
    plain(wire.DROP_FUNC, FUNCTIONS.map(wire.short)),
    plain(wire.CONFIG_SET, st.builds(lambda key, value: wire.short(key) + wire.value(value), KEYS, VALUES)),
    st.sampled_from([wire.PING, wire.STATUS, wire.DUMP, wire.SHUTDOWN, wire.SLEEP]).flatmap(plain),
    st.sampled_from([wire.JOB_ASSIGNED, wire.JOB_UNASSIGNED, wire.JOB_UNASSIGNED]).flatmap(plain),
    about(wire.WORK_DONE, st.binary(max_size=5)),
    about(wire.WORK_DONE, st.binary(max_size=5)),
    about(wire.WORK_DATA, st.binary(max_size=5)),
    about(wire.WORK_FAIL, NOTHING),
    about(wire.SCHED_LATER, LATER),
    about(wire.ACQUIRE, NOTHING, ACQUIRE),
    about(wire.ACQUIRE, NOTHING, ACQUIRE),
    about(wire.RELEASE, NOTHING, LOCKS.map(wire.short)),
)
ODD = st.tuples(st.integers(0, 255), st.binary(max_size=30), st.none(), NOTHING)
STEPS = st.lists(
    st.tuples(
        st.integers(0, len(PEERS) - 1),
        FEW,
        SAID | SAID | SAID | SAID | SAID | SAID | ODD | st.binary(max_size=40) | st.just(BYE),
        st.sampled_from([0.001, 0.001, 0.001, 0.3, 1.1, 700.0]),
    ),
    min_size=20,
    max_size=80,
)


@pytest.fixture(scope="module")
def loop() -> Iterator[FakeLoop]:
    loop = FakeLoop()
    yield loop
    loop.close()


def open_peer(door: PeriodicDoor, number: int) -> PeriodicConnection:
    peer = door.connect(parse("periodic://127.0.0.1"))
    transport: Any = Transport()
    peer.connection_made(transport)
    dialect, kind = PEERS[number]
    peer.data_received(wire.frame(dialect, wire.REQUEST, bytes([kind])))
    if kind == wire.WORKER:
        for message_id, said in ((b"can1", b"\x07\x01f"), (b"can2", b"\x07\x01g"), (b"grab", b"\x01")):
            peer.data_received(wire.frame(dialect, wire.REQUEST, message_id + said))
    return peer


def encode(peer: PeriodicConnection, message_id: bytes, said: Any) -> bytes:
    if isinstance(said, bytes):
        return said
    command, before, handle, rest = said
    if handle is not None:
        function, name, opaque = handle if isinstance(handle, tuple) else held(peer, handle)
        before += wire.short(opaque) if peer.dialect is wire.DOCUMENT else wire.short(function) + wire.short(name)
    return wire.frame(peer.dialect, wire.REQUEST, message_id + bytes([command]) + before + rest)


def who_works(peers: list[PeriodicConnection], number: int) -> int:
    """The next peer from this one on that has a job; itself if none has."""
    turns = [(number + turn) % len(peers) for turn in range(len(peers))]
    workers = ((turn, peers[turn].worker) for turn in turns)
    return next((turn for turn, worker in workers if worker is not None and worker.running), number)


def held(peer: PeriodicConnection, place: int) -> tuple[bytes, bytes, bytes]:
    jobs = peer.worker.running.jobs() if peer.worker is not None else []
    if not jobs:
        return b"f", b"a", b"H:t:1"
    job = jobs[place % len(jobs)]
    return job.function, job_names.name(job), job.handle


def check_answers(peer: PeriodicConnection) -> None:
    """What it was told are frames of its dialect, to the last byte."""
    data = peer.transport.written
    head = 12 if peer.dialect.crc else 8
    at = 0
    while at < len(data):
        assert data[at : at + 4] == wire.RESPONSE
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        payload = data[at + head : at + head + size]
        assert wire.frame(peer.dialect, wire.RESPONSE, payload) == data[at : at + head + size]
        at += head + size


@examples(150)
@given(steps=STEPS)
def test_nothing_breaks_the_door(loop: FakeLoop, steps: list[tuple[int, bytes, Any, float]]) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    log = logging.getLogger("geartrain.doors")
    log.addHandler(handler)
    try:
        play(loop, steps)
    finally:
        log.removeHandler(handler)
    assert not any(record.exc_info for record in records), "a handler raised what is not a WireError"


def play(loop: FakeLoop, steps: list[tuple[int, bytes, Any, float]]) -> None:
    engine = Engine(handle_prefix=b"H:t")
    tick_loop = TickLoop(loop, engine, lambda: NOW + loop.now)
    door = PeriodicDoor(tick_loop, Limits(), Options(), Control(), {})
    peers = [open_peer(door, number) for number in range(len(PEERS))]
    for number, message_id, said, pause in steps:
        loop.pass_time(pause)
        engine.tick(NOW + loop.now)
        if isinstance(said, tuple) and isinstance(said[2], int):
            number = who_works(peers, number)
        peer = peers[number]
        others = [other for other in peers if other is not peer and not other.closing]
        if said is BYE or peer.closing:
            peer.connection_lost(None)
            peers[number] = open_peer(door, number)
        else:
            peer.data_received(encode(peer, message_id, said))
        loop.pass_time(0)
        assert not any(other.closing for other in others), "a peer suffered for another's bytes"
        check_books(engine)
    for peer in peers:
        check_answers(peer)
        peer.connection_lost(None)
    engine.tick(NOW + loop.now + 1)
    assert engine.running == 0
    assert all(job.background for job in engine.jobs.values()), "a foreground job outlived its clients"
    assert all(function.workers == 0 for function in engine.functions.values())
    assert not engine.crews
    assert not door._expected, "a client that is gone is still expected to want data"
    assert not door.locks._held, "a lock is held by a job that nobody runs"
    door.close()
    tick_loop.close()


def check_books(engine: Engine) -> None:
    """The counters say what a recount says."""
    for function in engine.functions.values():
        jobs = [job for job in engine.jobs.values() if job.function == function.name]
        assert function.queued == sum(job.state is QUEUED for job in jobs)
        assert function.running == sum(job.state is RUNNING for job in jobs)
        assert function.scheduled == sum(job.state is SCHEDULED for job in jobs)
