"""Anything at all is sent to the Gearman door, by several peers at once; nothing may break it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.gearman.connection import GearmanConnection
from geartrain.doors.gearman.door import GearmanDoor, Options
from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import QUEUED, RUNNING, SCHEDULED
from geartrain.runtime.tick import TickLoop
from geartrain.wire import gearman as wire
from tests.support.examples import examples
from tests.support.transport import Transport


class Control:
    """A server that cannot be stopped."""

    log_level_name = "ERROR"

    def shutdown(self, graceful: bool) -> None: ...


FUNCTIONS = st.sampled_from([b"f", b"g", b"", b"\xff\x00"[:1]])
UNIQUES = st.sampled_from([b"", b"-", b"u", b"v", b"x" * 64, b"x" * 65])
HANDLES = st.integers(1, 6).map(lambda n: b"H:t:%d" % n) | st.just(b"H:t:" + b"9" * 70)
TEXTS = st.sampled_from([b"", b"1", b"0", b"abc", b"-1", b"4000000000", b"9" * 30, b"2000000000"])
PAYLOADS = st.binary(max_size=20)
SUBMITS = [7, 18, 21, 32, 33, 34]
WELL_FORMED = st.one_of(
    st.builds(wire.request, st.sampled_from([1, 2]), FUNCTIONS),
    st.builds(wire.request, st.sampled_from([3, 4, 9, 24, 30, 39])),
    st.builds(wire.request, st.sampled_from(SUBMITS), FUNCTIONS, UNIQUES, PAYLOADS),
    st.builds(wire.request, st.sampled_from([13, 25, 28, 29]), HANDLES, PAYLOADS),
    st.builds(wire.request, st.sampled_from([14, 15, 41]), HANDLES),
    st.builds(wire.request, st.just(12), HANDLES, TEXTS, TEXTS),
    st.builds(wire.request, st.just(23), FUNCTIONS, TEXTS),
    st.builds(wire.request, st.just(36), FUNCTIONS, UNIQUES, TEXTS, PAYLOADS),
    st.builds(wire.request, st.just(35), FUNCTIONS, UNIQUES, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, PAYLOADS),
    st.builds(wire.request, st.sampled_from([37, 38]), FUNCTIONS, UNIQUES, FUNCTIONS, TEXTS, PAYLOADS),
)
LINES = st.lists(
    st.sampled_from(
        [b"status", b"show", b"jobs", b"unique", b"workers", b"cancel", b"job", b"H:t:1", b"H:t:2", b"drop",
         b"create", b"function", b"f", b"maxqueue", b"1", b"2", b"prioritystatus", b"shutdown", b"graceful"]
    ),
    max_size=5,
).map(lambda words: b" ".join(words) + b"\n")  # fmt: skip
ODD = st.builds(wire.request, st.integers(1, 42), st.binary(max_size=30)) | st.binary(max_size=40)
STEPS = st.lists(
    st.tuples(st.integers(0, 3), WELL_FORMED | WELL_FORMED | WELL_FORMED | LINES | ODD | st.just(b"BYE")),
    max_size=60,
)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def open_peer(door: GearmanDoor) -> GearmanConnection:
    peer = door.connect(parse("gearman://127.0.0.1"))
    transport: Any = Transport()
    peer.connection_made(transport)
    return peer


def settle(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop come round, so that everything is flushed."""
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.call_soon(loop.stop)
    loop.run_forever()


@examples(150)
@given(steps=STEPS, linger=st.sampled_from([0.0, 0.001]))
def test_nothing_breaks_the_door(
    loop: asyncio.AbstractEventLoop, steps: list[tuple[int, bytes]], linger: float
) -> None:
    now = 1_000_000.0
    engine = Engine(handle_prefix=b"H:t")
    tick_loop = TickLoop(loop, engine, lambda: now)
    door = GearmanDoor(tick_loop, Limits(), Options("test", linger=linger), Control())
    peers = [open_peer(door) for _ in range(4)]
    for number, step in steps:
        now += 0.001
        peer = peers[number]
        others = [other for other in peers if other is not peer and not other.closing]
        if step == b"BYE" or peer.closing:
            peer.connection_lost(None)
            peers[number] = open_peer(door)
        else:
            peer.data_received(step)
        settle(loop)
        assert b"UNKNOWN_STATE" not in peer.transport.written, "a handler raised what is not a WireError"
        assert not any(other.closing for other in others), "a peer suffered for another's bytes"
    check_books(engine)
    for peer in peers:
        peer.connection_lost(None)
    engine.tick(now + 1)
    assert engine.running == 0
    assert all(job.background for job in engine.jobs.values()), "a foreground job outlived its clients"
    assert all(function.workers == 0 for function in engine.functions.values())
    assert not engine.crews
    door.close()
    tick_loop.close()


def check_books(engine: Engine) -> None:
    """The counters say what a recount says."""
    for function in engine.functions.values():
        jobs = [job for job in engine.jobs.values() if job.function == function.name]
        assert function.queued == sum(job.state is QUEUED for job in jobs)
        assert function.running == sum(job.state is RUNNING for job in jobs)
        assert function.scheduled == sum(job.state is SCHEDULED for job in jobs)
