"""Anything at all is said to the MemoDB door, by several pipes at once and over time; nothing may break it."""

import struct
from collections.abc import Iterator
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.memodb.connection import MemodbConnection
from geartrain.doors.memodb.door import MemodbDoor, Options
from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.doors.memodb.worker import NOTHING
from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import QUEUED, RUNNING
from geartrain.runtime.tick import TickLoop
from geartrain.wire import memodb as wire
from geartrain.wire import sp
from tests.support.examples import examples
from tests.support.fake_loop import FakeLoop
from tests.support.transport import Transport

READY, JOB, RESULT, HEARTBEAT, DISCONNECT = 1, 2, 3, 4, 5


class Room:
    """A door, its engine and its time, with pipes that have greeted."""

    def __init__(self, loop: FakeLoop) -> None:
        self.loop = loop
        self.engine = Engine(handle_prefix=b"H:t")
        self.tick_loop = TickLoop(loop, self.engine, lambda: loop.now)
        self.door = MemodbDoor(self.tick_loop, Limits(max_packet=10_000), Options())
        self.pipes = [self.pipe() for _ in range(3)]
        self.ids: list[bytes] = []  # of workers, as they were told

    def pipe(self) -> MemodbConnection:
        pipe = self.door.connect(parse("memodb+tcp://127.0.0.1"))
        transport: Any = Transport()
        pipe.connection_made(transport)
        pipe.data_received(sp.greeting(sp.REQ))
        self.settle()
        assert transport.written == sp.greeting(sp.REP)
        transport.written = b""
        return pipe

    def settle(self) -> None:
        """Let the loop come round, so that everything due is done and everything said is written."""
        self.loop.pass_time(0)

    def wait(self, seconds: float) -> None:
        self.loop.pass_time(seconds)
        self.engine.tick(self.loop.now)
        self.settle()

    def heard(self, pipe: MemodbConnection) -> list[tuple[int, list[Any]]]:
        """The replies since the last time: request ids and headers."""
        data: bytes = pipe.transport.written
        pipe.transport.written = b""
        found = []
        while data:
            (size,) = struct.unpack_from(">Q", data)
            (request,) = struct.unpack_from(">I", data, 8)
            found.append((request, cbor2.loads(data[12 : 8 + size])))
            data = data[8 + size :]
        return found

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.connection_lost(None)
        self.door.close()
        self.tick_loop.close()


@pytest.fixture(scope="module")
def loop() -> Iterator[FakeLoop]:
    loop = FakeLoop()
    yield loop
    loop.close()


@pytest.fixture
def room(loop: FakeLoop) -> Iterator[Room]:
    room = Room(loop)
    yield room
    room.close()


def message(number: int, *items: object, payload: bytes = b"") -> bytes:
    body = struct.pack(">I", 0x80000000 + number) + cbor2.dumps(list(items)) + payload
    return struct.pack(">Q", len(body)) + body


NUMBERS = st.integers(1, 8)  # few, so that requests are often sent again
SERVICES = st.sampled_from(["f", "f", "g", "é"])
OFFERS = st.sampled_from([["f"], ["f"], ["g", "f"], ["é"], []])
IDS = st.integers(0, 3)  # the n-th id that was given, or one that never was
TIMEOUTS = st.sampled_from([-1, 0, 1, 5000, 60_000, 2**63])
STEPS = st.one_of(
    st.tuples(st.just("ready"), NUMBERS, OFFERS),
    st.tuples(st.just("job"), NUMBERS, SERVICES, TIMEOUTS),
    st.tuples(st.just("result"), NUMBERS, IDS, st.sampled_from([(), (True,), (False,)])),
    st.tuples(st.just("heartbeat"), NUMBERS, IDS),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.5, 6.0, 11.0])),
    st.tuples(st.just("bytes"), st.binary(max_size=40)),
    st.tuples(st.just("leave")),
)


def said(room: Room, step: tuple[Any, ...]) -> bytes:
    match step:
        case ("ready", number, services):
            return message(number, "memo01", READY, b"", services)
        case ("job", number, service, timeout):
            return message(number, "memo01", JOB, b"", service, timeout, payload=b"payload")
        case ("result", number, place, flag):
            return message(number, "memo01", RESULT, nth_id(room, place), *flag, payload=b"result")
        case ("heartbeat", number, place):
            return message(number, "memo01", HEARTBEAT, nth_id(room, place))
        case ("bytes", rubbish):
            return struct.pack(">Q", 4 + len(rubbish)) + b"\x80\0\0\x63" + rubbish
    raise AssertionError(step)


def nth_id(room: Room, place: int) -> bytes:
    return room.ids[place] if place < len(room.ids) else b"none"


@examples(300)
@given(steps=st.lists(st.tuples(st.integers(0, 2), STEPS), max_size=60))
def test_nothing_breaks_the_door(loop: FakeLoop, steps: list[tuple[int, tuple[Any, ...]]]) -> None:
    room = Room(loop)
    for number, step in steps:
        pipe = room.pipes[number]
        others = [other for other in room.pipes if other is not pipe and not other.closing]
        if step[0] == "wait":
            room.wait(step[1])
        elif step[0] == "leave" or pipe.closing:
            pipe.connection_lost(None)
            room.pipes[number] = room.pipe()
        else:
            pipe.data_received(said(room, step))
            room.settle()
            assert not pipe.closing, "a message that may only be ignored ended its pipe"
            assert not any(other.closing for other in others), "a pipe suffered for another's bytes"
        for other in room.pipes:
            for _, header in room.heard(other):
                assert header[0] == "memo01"
                if header[1] == DISCONNECT and header[2] in room.door.workers:
                    assert room.door.workers[header[2]].connection is not other
                if header[2] and header[1] != DISCONNECT and header[2] not in room.ids:
                    room.ids.append(header[2])
        check(room)
    for pipe in room.pipes:
        pipe.connection_lost(None)
    room.settle()
    assert not room.engine.jobs
    assert not room.engine.crews
    assert room.engine.running == 0
    assert not room.door.workers
    assert (len(room.door.unchecked), len(room.door.idle)) == (0, 0)
    room.door.close()
    assert len(room.tick_loop.timers) == (room.tick_loop._deadline_call is not None), "the engine has the only timer"
    room.tick_loop.close()


def check(room: Room) -> None:
    """What the door knows agrees with what the engine knows."""
    waiting = 0
    for pipe in room.pipes:
        for backtrace, request in pipe.outstanding.items():
            assert request.backtrace == backtrace
            assert request.connection is pipe
            if isinstance(request, MemodbWatcher):
                assert request.job is not None
                assert request.watching == {request.job}
                assert request.job.state in (QUEUED, RUNNING)
                assert request.is_checked or request.job.state is RUNNING
            else:
                assert request.owes == NOTHING
                assert room.door.workers[request.id] is request
                waiting += 1
    workers = room.door.workers.values()
    assert waiting == sum(worker.owes == NOTHING for worker in workers)
    for worker in workers:
        assert worker in worker.connection.workers
        assert worker.idle == (worker.owes == NOTHING)
        assert worker.is_timed == (worker.owes != wire.RESULT)
        assert len(worker.running) == (worker.owes == wire.RESULT and not abandoned(worker))
    assert sum(len(pipe.workers) for pipe in room.pipes) == len(workers)


def abandoned(worker: Any) -> bool:
    return worker.job is None or worker.job.handle not in worker.running


def test_the_times_of_the_original(room: Room) -> None:
    """Ten seconds for everything: a heartbeat, its answer, and a job that nobody takes."""
    pipe, other, _ = room.pipes
    pipe.data_received(message(1, "memo01", READY, b"", ["f"]))
    other.data_received(message(1, "memo01", JOB, b"", "g", 60_000))
    room.wait(9.9)
    assert room.heard(pipe) == []
    assert not other.closing
    room.wait(0.2)
    [(request, [_, kind, id])] = room.heard(pipe)
    assert (request, kind) == (0x80000001, HEARTBEAT)
    assert other.closing
    room.wait(9.8)
    assert id in room.door.workers
    room.wait(0.2)
    assert id not in room.door.workers
    pipe.data_received(message(2, "memo01", HEARTBEAT, id))
    room.settle()
    assert room.heard(pipe) == [(0x80000002, ["memo01", DISCONNECT, id])]


def test_a_job_has_its_own_time(room: Room) -> None:
    worker, client, _ = room.pipes
    worker.data_received(message(1, "memo01", READY, b"", ["f"]))
    client.data_received(message(1, "memo01", JOB, b"", "f", 300_000))
    room.settle()
    [(_, [_, kind, id, _, _])] = room.heard(worker)
    assert kind == JOB
    room.wait(299.0)
    assert not client.closing
    worker.data_received(message(2, "memo01", RESULT, id, payload=b"result"))
    room.settle()
    assert room.heard(client) == [(0x80000001, ["memo01", RESULT, b""])]


def test_what_is_left_of_the_clients_time(room: Room) -> None:
    first, client, second = room.pipes
    first.data_received(message(1, "memo01", READY, b"", ["f"]))
    client.data_received(message(1, "memo01", JOB, b"", "f", 300_000))
    room.wait(100.0)
    first.connection_lost(None)
    room.wait(150.0)  # nobody else is there, and the client has time
    assert not client.closing
    second.data_received(message(1, "memo01", READY, b"", ["f"]))
    room.settle()
    [(_, [_, kind, _, _, timeout])] = room.heard(second)
    assert (kind, timeout) == (JOB, 200_000)
    assert room.engine.running == 1


def test_a_lost_job_ends_with_the_clients_time(room: Room) -> None:
    first, client, second = room.pipes
    first.data_received(message(1, "memo01", READY, b"", ["f"]))
    client.data_received(message(1, "memo01", JOB, b"", "f", 300_000))
    room.wait(100.0)
    first.connection_lost(None)
    room.wait(199.0)
    assert not client.closing
    room.wait(1.1)
    assert client.closing
    second.data_received(message(1, "memo01", READY, b"", ["f"]))
    room.settle()
    assert room.heard(second) == []


def test_a_worker_that_is_too_slow_is_gone(room: Room) -> None:
    slow, client, other = room.pipes
    slow.data_received(message(1, "memo01", READY, b"", ["f"]))
    client.data_received(message(1, "memo01", JOB, b"", "f", 5000))
    room.settle()
    [(_, [_, _, id, *_])] = room.heard(slow)
    other.data_received(message(1, "memo01", READY, b"", ["f"]))
    room.wait(5.1)
    assert client.closing
    assert room.heard(other) == []
    assert id not in room.door.workers
    slow.data_received(message(2, "memo01", RESULT, id, payload=b"too late"))
    room.settle()
    assert room.heard(slow) == [(0x80000002, ["memo01", DISCONNECT, id])]


def test_ids_are_random(room: Room) -> None:
    ids = [room.door.new_id() for _ in range(100)]
    assert {len(id) for id in ids} == {16}
    assert len({id[:8] for id in ids}) == len({id[8:] for id in ids}) == 100


def test_a_peer_that_never_greets_is_shown_out(room: Room) -> None:
    pipe = room.door.connect(parse("memodb+ws://127.0.0.1/memo"))
    transport: Any = Transport()
    pipe.connection_made(transport)
    for _ in range(3):
        pipe.check_progress(2)
    assert pipe.closing
    for greeted in room.pipes:
        for _ in range(3):
            greeted.check_progress(2)
        assert not greeted.closing
