"""Anything at all is sent to the GearMonkey door, by several peers at once; nothing may break it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.gearmonkey import commands
from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
from geartrain.doors.gearmonkey.door import GearmonkeyDoor, Options
from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import QUEUED, RUNNING, SCHEDULED
from geartrain.model import Record
from geartrain.runtime.tick import TickLoop
from geartrain.wire import resp
from tests.support.examples import examples
from tests.support.transport import Transport


class Archive:
    """Knows of one job that is over."""

    async def result(self, record: Record) -> bytes:
        return record.result

    async def find(self, handle: bytes) -> Record | None:
        if handle != b"H:t:1":
            return None
        return Record(1, handle, b"f", b"", 1, 3, 1.0, 1.0, 1.0, 1, "gearman", "gearman", b"", 0, "", b"out")


NUMBERS = st.integers(0, 12).map(lambda n: b"%d" % n)
FUNCTIONS = st.sampled_from([b"f", b"g:h", b"", b"\xff"])
PRIORITIES = st.sampled_from([b"high", b"normal", b"low", b"scheduled", b"urgent"])
KEYS = st.one_of(
    st.builds(lambda kind, fn: kind + b":" + fn, st.sampled_from([b"uid", b"count", b"channel"]), FUNCTIONS),
    st.builds(lambda kind, fn, n: b":".join((kind, fn, n)), st.sampled_from([b"job", b"lock"]), FUNCTIONS, NUMBERS),
    st.builds(lambda fn, name: b":".join((b"queue", fn, name)), FUNCTIONS, PRIORITIES),
    st.sampled_from([b"session:1", b"job", b"job:f:x", b"queue:f", b"*", b"channel:*", b""]),
)
VALUES = st.sampled_from(
    [b"status", b"idle", b"busy", b"success", b"error", b"input", b"output", b"status:dividend", b"status:divisor",
     b"0", b"1", b"-1", b"0.5", b"nan", b"inf", b"1e400", b"99999999999999999999", b"2000000", b"WITHSCORES", b"LIMIT",
     b"MATCH", b"COUNT", b"TYPE", b"LOAD", b"EXISTS", b"SETNAME", b"LIST", b"2", b"3", b"AUTH", b"NX",
     b"5231827cd49b540660ef44969b38cc858f157824"]
)  # fmt: skip
WORDS = st.lists(KEYS | VALUES | NUMBERS | st.binary(max_size=8), max_size=6)
ANYTHING = st.builds(lambda name, words: resp.request(name, *words), st.sampled_from(sorted(commands.COMMANDS)), WORDS)
F, ID = st.sampled_from([b"f", b"g:h"]), NUMBERS


def built(shape: bytes) -> Any:
    """Commands of a shape such as `LPUSH queue:{f}:normal {id}`."""
    return st.builds(lambda f, number: resp.request(*shape.replace(b"{f}", f).replace(b"{id}", number).split()), F, ID)


SENSIBLE = st.one_of(
    *map(
        built,
        [
            b"SUBMIT {f} normal",
            b"SUBMIT {f} high",
            b"SUBMIT {f} low",
            b"HMSET {some} status success output y",
            b"HMSET {some} status busy",
            b"HSET {some} status error output y",
            b"HSET {some} status success",
            b"HSET {some} output y",
            b"HSET {some} colour red",
            b"HDEL {some} colour",
            b"HSET {some} status:dividend 0.5 status:divisor 9223372036854775807",
            b"LPUSH {lock} OK",
            b"EXPIRE {some} 90000",
            b"CLIENT GRACE 0",
            b"BRPOP {lock} 0",
            b"DEL {some}",
            b"INCR uid:{f}",
            b"INCRBY uid:{f} 1",
            b"HMSET job:{f}:{id} status idle input x",
            b"LPUSH queue:{f}:normal {id}",
            b"LPUSH queue:{f}:high {id}",
            b"RPUSH queue:{f}:low {id}",
            b"ZADD queue:{f}:scheduled 1 {id}",
            b"ZADD queue:{f}:scheduled 1000000.01 {id}",
            b"EVALSHA 5231827cd49b540660ef44969b38cc858f157824 1 queue:{f}:scheduled 2000000",
            b"BRPOP queue:{f}:high queue:{f}:normal queue:{f}:low 0",
            b"BRPOP queue:{f}:low 0",
            b"BRPOP lock:{f}:{id} queue:f:high 0",
            b"RPOP queue:{f}:normal",
            b"HMSET job:{f}:{id} status busy",
            b"HMSET job:{f}:{id} status:dividend 1 status:divisor 2",
            b"HMSET job:{f}:{id} status success output y",
            b"HSET job:{f}:{id} output y",
            b"HSET job:{f}:{id} status error",
            b"HGETALL job:{f}:{id}",
            b"DEL job:{f}:{id}",
            b"LREM queue:{f}:normal 0 {id}",
            b"ZREM queue:{f}:scheduled {id}",
            b"INCR count:{f}",
            b"DECR count:{f}",
            b"SUBSCRIBE channel:{f}",
            b"PSUBSCRIBE *",
            b"UNSUBSCRIBE",
            b"HELLO 3",
            b"RESET",
            b"MULTI",
            b"EXEC",
            b"WATCH job:{f}:{id}",
        ],
    )
)
GARBAGE = st.binary(max_size=30) | st.sampled_from([b"*1\r\n$1099511627776\r\n", b"*1\r\n" * 1000, b"*3\r\n$3\r\n"])
STEPS = st.lists(
    st.tuples(st.integers(0, 3), SENSIBLE | SENSIBLE | SENSIBLE | SENSIBLE | ANYTHING | GARBAGE | st.just(b"BYE")),
    max_size=60,
)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def open_peer(door: GearmonkeyDoor) -> GearmonkeyConnection:
    peer = door.connect(parse("gearmonkey://127.0.0.1"))
    transport: Any = Transport()
    peer.connection_made(transport)
    return peer


def settle(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop come round, so that everything is flushed and looked up."""
    for _ in range(4):
        loop.call_soon(loop.stop)
        loop.run_forever()


@examples(300)
@given(steps=STEPS, grace=st.sampled_from([0.0, 60.0]))
def test_nothing_breaks_the_door(loop: asyncio.AbstractEventLoop, steps: list[tuple[int, bytes]], grace: float) -> None:
    now = 1_000_000.0
    engine = Engine(handle_prefix=b"H:t", first_id=2)
    tick_loop = TickLoop(loop, engine, lambda: now)
    door = GearmonkeyDoor(tick_loop, Limits(max_packet=10_000), Options("test", grace), Archive(), {})
    peers = [open_peer(door) for _ in range(4)]
    for number, step in steps:
        now += 0.001
        peer = peers[number]
        # One whose pop waits has yet to be told what is wrong with the bytes that it sent meanwhile.
        others = [other for other in peers if other is not peer and not other.closing and other.blocked_pop is None]
        if step == b"BYE" or peer.closing:
            peer.connection_lost(None)
            peers[number] = open_peer(door)
        else:
            peer.data_received(made_concrete(step, engine, len(steps)))
        engine.tick(now)
        settle(loop)
        assert b"internal error" not in peer.transport.written, "a handler raised what is not a WireError"
        assert not any(other.closing for other in others), "a peer suffered for another's bytes"
    check_books(engine)
    check_door(door)
    for peer in peers:
        peer.connection_lost(None)
    check_books(engine)
    check_door(door)
    door.stop_listening()
    settle(loop)
    assert engine.running == 0
    assert not door.detached
    assert not door.ending
    assert all(function.workers == 0 for function in engine.functions.values())
    assert not engine.crews
    assert not door.channels
    assert not door.popped
    assert not door.blocked_pops.count
    assert not +door.counts.registered
    assert all(door.counts.value(function) == 0 for function in engine.functions)
    door.close()
    tick_loop.close()


def made_concrete(step: bytes, engine: Engine, seed: int) -> bytes:
    """Commands with ids that make sense now: SUBMIT is the three that submit a job, {some} a job that is there."""
    if step.startswith(b"*") and b"SUBMIT" in step:
        _, function, priority = step.split(b"\r\n")[2::2][:3]
        number = b"%d" % engine.next_id
        return (
            resp.request(b"INCR", b"uid:" + function)
            + resp.request(b"HMSET", b"job:%b:%b" % (function, number), b"status", b"idle", b"input", b"x")
            + resp.request(b"LPUSH", b"queue:%b:%b" % (function, priority), number)
        )
    jobs = list(engine.jobs.values())
    if jobs and (b"{some}" in step or b"{lock}" in step):
        job = jobs[seed % len(jobs)]
        words = step.split(b"\r\n")[2::2]
        names = {b"{some}": b"job:%b:%d" % (job.function, job.id), b"{lock}": b"lock:%b:%d" % (job.function, job.id)}
        return resp.request(*[names.get(word, word) for word in words])
    return step


def check_books(engine: Engine) -> None:
    """The counters say what a recount says."""
    for function in engine.functions.values():
        jobs = [job for job in engine.jobs.values() if job.function == function.name]
        assert function.queued == sum(job.state is QUEUED for job in jobs)
        assert function.running == sum(job.state is RUNNING for job in jobs)
        assert function.scheduled == sum(job.state is SCHEDULED for job in jobs)


def check_door(door: GearmonkeyDoor) -> None:
    """What the door remembers of jobs is there."""
    assert 0 not in door.counts.registered.values(), "functions that nobody offers are forgotten"
    engine = door.tick_loop.engine
    running = {job.handle for job in engine.jobs.values() if job.state is RUNNING}
    assert len(door.popped) == len(running)
    assert all(handle in door.popped for handle in running)
    assert door.scheduled <= {job.handle for job in [*engine.jobs.values(), *engine.dead.values()]}
    known = {*engine.jobs, *engine.dead}
    assert all(door.jobs.written.get(number) is None for number in range(engine.next_id) if number not in known)
    assert door.blocked_pops.count == sum(peer.blocked_pop is not None for peer in door.peers())
