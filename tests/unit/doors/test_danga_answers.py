"""What the draft's door says where time, the disk and the archive have a part in it."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.worker import Worker
from geartrain.errors import StoreError
from geartrain.model import Record
from geartrain.runtime.tick import TickLoop
from geartrain.wire import danga as wire
from tests.support.danga_door import made, open_peer, settle
from tests.support.transport import PausingTransport


def record(code: int = 0, state: int = 3, started_at: float = 10.0, result: bytes = b"x") -> Record:
    return Record(1, b"H:t:1", b"f", b"", 1, state, 5.0, started_at, 15.9, 1, "danga", "memodb", b"", code, "", result)


class Archive:
    """Answers what it was given, when it is let."""

    def __init__(self) -> None:
        self.answer: Record | Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def result(self, record: Record) -> bytes:
        return record.result

    async def find(self, handle: bytes) -> Record | None:
        await self.open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class SlowDisk:
    """Every answer that waits for the disk waits until the test says so."""

    def __init__(self, tick_loop: TickLoop) -> None:
        self._durability = tick_loop.durability
        self._durability.changed()

    def end_commit(self, failed: bool) -> None:
        self._durability.begin_commit()
        self._durability.end_commit(failed)
        self._durability.changed()


class Scene:
    """A door with an application and a worker for `f`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.now = 1000.0
        self.engine = Engine(handle_prefix=b"H:t")
        self.tick_loop = TickLoop(loop, self.engine, lambda: self.now)
        self.archive = Archive()
        self.door = made(self.tick_loop, archive=self.archive)
        self.application = open_peer(self.door)
        self.worker = open_peer(self.door)
        self.say(self.worker, wire.worker_connect([b"f"]))

    def say(self, peer: PausingTransport, data: bytes) -> bytes:
        """What the peer is told by the end of the tick, from this moment on."""
        before = len(peer.written)
        peer.protocol.data_received(data)
        settle(self.loop)
        return peer.written[before:]

    def heard(self, peer: PausingTransport) -> bytes:
        """What the peer was told since it was last asked."""
        said, peer.written = peer.written, b""
        return said


@pytest.fixture
def scene() -> Iterator[Scene]:
    loop = asyncio.new_event_loop()
    scene = Scene(loop)
    yield scene
    for peer in (scene.application, scene.worker):
        peer.protocol.connection_lost(None)
    settle(loop)
    scene.door.close()
    scene.tick_loop.close()
    loop.close()


CREATE_SYNC = wire.job_create_req(b"f", b"", wire.SYNC_WAIT, b"args")
CREATE = wire.job_create_req(b"f", b"", wire.ASYNC_HANDLE, b"args")


@pytest.mark.parametrize(("took", "seconds"), [(0.0, 1), (0.9, 1), (1.5, 1), (2.0, 2), (90.7, 90), (-50.0, 1)])
def test_elapsed_seconds_are_the_workers(scene: Scene, took: float, seconds: int) -> None:
    scene.say(scene.application, CREATE_SYNC)
    scene.now += 500  # in the queue, which does not count
    scene.say(scene.worker, wire.job_assign_req())
    scene.heard(scene.application)
    scene.now += took
    scene.say(scene.worker, wire.job_complete_announce(0, b"done"))
    assert scene.heard(scene.application) == wire.job_complete_res(seconds, 0, b"done")


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, (0, 0, b"")),
        (record(), (5, 0, b"x")),
        (record(code=9, state=4), (5, 9, b"x")),
        (record(code=0, state=4), (5, 1, b"x")),
        (record(code=256, state=4), (5, 1, b"x")),
        (record(code=-1, state=5), (5, 1, b"x")),
        (record(state=5, started_at=0.0, result=b""), (1, 1, b"")),
        (record(started_at=99.0), (1, 0, b"x")),
    ],
)
def test_records(scene: Scene, found: Record | None, told: tuple[int, int, bytes]) -> None:
    scene.archive.answer = found
    assert scene.say(scene.application, wire.job_complete_req(b"H:t:1")) == wire.job_complete_res(*told)


def test_a_result_that_was_cut_is_an_error_and_in_the_log(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.archive.answer = record(result=b"x" * 100)._replace(result_size=200, result_kept=100)
    answer = scene.say(scene.application, wire.job_complete_req(b"H:t:1"))
    assert answer == wire.job_complete_res(5, 254, b"the result was cut: 100 of 200 bytes are kept")
    assert [entry.message for entry in caplog.records] == ["result was cut"]


@pytest.mark.parametrize(
    ("fault", "event"),
    [(StoreError("the disk is gone"), "peer refused"), (RuntimeError("a bug"), "packet handling failed")],
)
def test_a_record_that_cannot_be_read_ends_the_connection(
    scene: Scene, fault: Exception, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene.archive.answer = fault
    assert scene.say(scene.application, wire.job_complete_req(b"H:t:1") + wire.job_status_req(b"?")) == b""
    assert (scene.application.closed, scene.worker.closed) == (True, False)
    assert [record.message for record in caplog.records] == [event]


class Bug(Worker):
    """A worker that cannot be woken."""

    def wake(self) -> None:
        raise RuntimeError("a bug")


def test_a_bug_ends_only_the_connection_it_is_in(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """Inside a worker's verb too, where the next sync job is created for an application."""
    scene.say(scene.application, CREATE_SYNC + CREATE_SYNC)
    scene.say(scene.worker, wire.job_assign_req())
    for _ in range(2):  # one for each job that is submitted below
        bug = Bug("test")
        scene.engine.register(bug, b"f")
        scene.engine.sleep(bug)
    scene.say(scene.worker, wire.job_complete_announce(0))
    assert (scene.application.closed, scene.worker.closed) == (True, False)
    other = open_peer(scene.door)
    scene.say(other, CREATE)
    assert other.closed
    assert [entry.levelno for entry in caplog.records] == [logging.ERROR] * 2
    other.protocol.connection_lost(None)


def test_an_application_that_leaves_while_the_archive_is_asked(scene: Scene) -> None:
    scene.archive.open.clear()
    leaver = open_peer(scene.door)
    scene.say(leaver, wire.job_complete_req(b"H:t:1") + CREATE)
    leaver.protocol.connection_lost(None)
    scene.archive.open.set()
    settle(scene.loop)
    assert leaver.written == b""
    assert not scene.engine.jobs  # what waited behind the question was never asked


def test_a_handle_is_told_when_the_job_is_durable(scene: Scene) -> None:
    disk = SlowDisk(scene.tick_loop)
    assert scene.say(scene.application, CREATE + wire.job_status_req(b"?")) == b""
    disk.end_commit(failed=False)
    assert scene.heard(scene.application) == wire.job_create_res(b"H:t:1") + wire.job_status_res(0, 0, 0)


def test_a_job_that_cannot_be_made_durable_has_no_handle(scene: Scene) -> None:
    disk = SlowDisk(scene.tick_loop)
    scene.say(scene.application, CREATE)
    disk.end_commit(failed=True)
    assert scene.heard(scene.application) == wire.job_create_res(b"")


def test_a_result_is_told_when_it_is_durable(scene: Scene) -> None:
    scene.archive.answer = record()
    disk = SlowDisk(scene.tick_loop)
    assert scene.say(scene.application, wire.job_complete_req(b"H:t:1")) == b""
    disk.end_commit(failed=False)
    assert scene.heard(scene.application) == wire.job_complete_res(5, 0, b"x")
    scene.say(scene.application, wire.job_complete_req(b"H:t:1"))
    disk.end_commit(failed=True)
    assert scene.heard(scene.application) == wire.INCOMPLETE_PACKET


def test_nothing_is_heard_after_a_refusal_that_waits_for_the_disk(scene: Scene) -> None:
    disk = SlowDisk(scene.tick_loop)
    scene.say(scene.application, CREATE + b"rubbish")
    scene.say(scene.application, CREATE)
    assert len(scene.engine.jobs) == 1
    assert not scene.application.closed
    disk.end_commit(failed=False)
    assert scene.heard(scene.application) == wire.job_create_res(b"H:t:1")
    assert scene.application.closed
