"""When what was said leaves: once per turn of the loop, or once in two where work is waiting."""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.doors.pulse import Flushable, Pulse
from geartrain.engine.engine import Engine, SilentWorker
from geartrain.engine.watcher import Watcher


class Speaker(Flushable):
    """A connection that counts how often it is flushed."""

    def __init__(self) -> None:
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1

    def settle(self, ticket: int, failed: bool) -> None:
        raise AssertionError("nothing was held")


class Scene:
    """A pulse on a loop that is turned by hand."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.time = 1000.0
        self.engine = Engine()
        self.pulse = Pulse(loop, self.engine, lambda: self.time)
        self.speaker = Speaker()
        self.watcher = Watcher()
        self.worker = SilentWorker("test")
        self.engine.enroll(self.worker, b"f")

    def claim(self) -> None:
        """The worker is answered with a job."""
        self.pulse.begin()
        assert self.engine.claim(self.worker) is not None
        self.pulse.flush_later(self.speaker)

    def turn(self) -> int:
        """One turn of the loop; how often something has left by then."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        return self.speaker.flushes


@pytest.fixture
def scene() -> Iterator[Scene]:
    loop = asyncio.new_event_loop()
    try:
        yield Scene(loop)
    finally:
        loop.close()


def submit(scene: Scene, count: int) -> None:
    for _ in range(count):
        scene.engine.submit(b"f", watcher=scene.watcher)


def test_an_answer_leaves_in_its_turn_where_nobody_waits(scene: Scene) -> None:
    submit(scene, 1)
    scene.claim()
    assert scene.turn() == 1


def test_where_jobs_wait_answers_of_two_turns_leave_together(scene: Scene) -> None:
    submit(scene, 10)
    scene.claim()
    assert scene.turn() == 0
    scene.time = 1001.0
    scene.claim()
    assert scene.engine.now == 1001.0, "the second turn has a time of its own"
    assert scene.turn() == 2
    assert scene.turn() == 2


def test_a_queue_that_nobody_waits_for_holds_up_nothing(scene: Scene) -> None:
    for _ in range(10):
        scene.engine.submit(b"f", background=True)
    scene.claim()
    assert scene.turn() == 1


def test_no_answer_waits_for_a_third_turn(scene: Scene) -> None:
    submit(scene, 10)
    for _ in range(3):
        scene.claim()
        before = scene.speaker.flushes
        assert scene.turn() == before
        assert scene.turn() == before + 1
