"""Requests that wait for a record, a sync job or a free place: what arrives behind them has a bound."""

import asyncio
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.memodb.door import MemodbDoor, Options
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.engine.engine import Engine
from geartrain.model import Record
from geartrain.runtime.tick import TickLoop
from geartrain.wire import danga, memodb_client, resp, sp
from tests.support import danga_door, gearmonkey_door
from tests.support.fake_loop import FakeLoop
from tests.support.transport import PausingTransport

PIECE = 64 * 1024
PIECES = 100
WAITING = danga.job_status_req(b"?" * 4000)
# All that may wait: in the codec, beside it, and the pieces that exceeded the mark.
MOST_WAITING = 2 * (HIGH_WATER + PIECE)


def flood(peer: PausingTransport, request: bytes, turn: Callable[[], object]) -> int:
    """Send as long as the peer is read; returns the number of bytes."""
    sent = 0
    for _ in range(PIECES):
        if peer.reading:
            peer.protocol.data_received(request * (PIECE // len(request)))
            sent += PIECE // len(request) * len(request)
        turn()
    return sent


class LargeRecord:
    """An archive with one result."""

    def __init__(self, result: bytes) -> None:
        self.result_of_all = result

    async def find(self, handle: bytes) -> Record | None:
        await asyncio.sleep(0)
        return Record(1, handle, b"f", b"", 1, 3, 1.0, 2.0, 5.5, 1, "danga", "danga", b"", 0, "", self.result_of_all)

    async def result(self, record: Record) -> bytes:
        return record.result


class DangaScene:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.engine = Engine(handle_prefix=b"H:t")
        self.tick_loop = TickLoop(self.loop, self.engine, lambda: 1000.0)
        self.door = danga_door.made(self.tick_loop, archive=LargeRecord(bytes(PIECE)))
        self.application = danga_door.open_peer(self.door)
        self.worker = danga_door.open_peer(self.door)

    def turn(self) -> None:
        danga_door.settle(self.loop)

    def say(self, peer: PausingTransport, data: bytes) -> None:
        peer.protocol.data_received(data)
        self.turn()

    def until(self, condition: Callable[[], object]) -> None:
        for _ in range(20_000):
            if condition():
                return
            self.turn()
        raise AssertionError("it never came")


@pytest.fixture
def scene() -> Iterator[DangaScene]:
    scene = DangaScene()
    yield scene
    for peer in (scene.application, scene.worker):
        peer.protocol.connection_lost(None)
    scene.turn()
    scene.door.close()
    scene.tick_loop.close()
    scene.loop.close()


def test_gearmonkey_commands_behind_a_lookup() -> None:
    request = resp.request(b"HEXISTS", b"job:other:1", bytes(4000))
    with gearmonkey_door.opened() as bench:
        bench.submit()
        peer = bench.peer()
        sent = flood(peer.transport, request, bench.turn)
        assert sent - peer.transport.written.count(b":0\r\n") * len(request) <= MOST_WAITING
        while not peer.transport.reading:
            bench.turn()
        peer.ask("PING")
        while not peer.transport.written.endswith(b"+PONG\r\n"):
            bench.turn()
        assert peer.transport.written == b":0\r\n" * (sent // len(request)) + b"+PONG\r\n"


def test_danga_requests_behind_a_lookup(scene: DangaScene) -> None:
    request = danga.job_status_req(b"H:%b:1" % (b"t" * 4000))
    sent = flood(scene.application, request, scene.turn)
    answers = len(scene.application.written) // len(danga.job_status_res(0, 0, 0))
    assert sent - answers * len(request) <= MOST_WAITING
    expected = danga.job_status_res(0, 0, 0) * (sent // len(request))
    scene.until(lambda: len(scene.application.written) == len(expected))
    assert scene.application.written == expected


def test_danga_records_wait_for_a_peer_that_does_not_read(scene: DangaScene) -> None:
    scene.application.full = True
    scene.say(scene.application, danga.job_complete_req(b"H:t:1") * 100)
    for _ in range(500):
        scene.turn()
    answer = danga.job_complete_res(3, 0, bytes(PIECE))
    assert len(answer) <= len(scene.application.written) <= HIGH_WATER + 2 * len(answer)
    scene.application.drain()
    scene.until(lambda: len(scene.application.written) == 100 * len(answer))
    assert scene.application.written == answer * 100


def test_danga_requests_behind_a_sync_job(scene: DangaScene) -> None:
    scene.say(scene.application, danga.job_create_req(b"f", b"", danga.SYNC_WAIT, b"args"))
    sent = flood(scene.application, WAITING, scene.turn)
    assert sent <= MOST_WAITING
    assert scene.application.written == danga.job_create_res(b"H:t:1")
    scene.say(scene.worker, danga.worker_connect([b"f"]) + danga.job_assign_req() + danga.job_complete_announce(0))
    answers = danga.job_status_res(0, 0, 0) * (sent // len(WAITING))
    scene.until(lambda: scene.application.written.endswith(answers))
    assert scene.application.reading


def test_danga_packets_of_a_worker_do_not_wait_behind_its_own_sync_job(scene: DangaScene) -> None:
    peer = scene.application
    scene.say(peer, danga.worker_connect([b"f"]))
    scene.say(peer, danga.job_create_req(b"f", b"", danga.SYNC_WAIT, b"args"))
    sent = flood(peer, WAITING, scene.turn)
    assert sent > MOST_WAITING
    scene.say(peer, danga.job_assign_req() + danga.job_complete_announce(0))
    answers = danga.job_status_res(0, 0, 0) * (sent // len(WAITING))
    scene.until(lambda: peer.written.endswith(answers))


def test_a_memodb_pipe_with_too_many_requests_is_read_so_that_its_end_is_noticed() -> None:
    loop = FakeLoop()
    engine = Engine(handle_prefix=b"H:t")
    tick_loop = TickLoop(loop, engine, lambda: loop.now)
    door = MemodbDoor(tick_loop, Limits(), Options(requests_per_pipe=1))
    pipe = door.connect(parse("memodb+tcp://127.0.0.1"))
    transport: Any = PausingTransport(pipe)
    pipe.connection_made(transport)
    pipe.data_received(sp.greeting(sp.REQ) + _job(1) + _job(2))
    assert (len(engine.jobs), transport.reading) == (1, True)
    for number in range(3, PIECES):
        if transport.reading:
            pipe.data_received(_job(number, bytes(PIECE)))
    assert not transport.reading, "what waits has a bound"
    loop.pass_time(0)
    assert (len(engine.jobs), transport.reading) == (1, False)
    pipe.connection_lost(None)
    assert len(engine.jobs) == 0
    tick_loop.close()
    loop.close()


def _job(number: int, payload: bytes = b"") -> bytes:
    """A JOB of MemoDB, with its length and its request id."""
    message = struct.pack(">I", 0x80000000 | number) + memodb_client.job(b"f", 60_000) + payload
    return struct.pack(">Q", len(message)) + message
