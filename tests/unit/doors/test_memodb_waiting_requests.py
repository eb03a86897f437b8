"""Requests of the MemoDB door that wait, all of them for the same time at most."""

from collections.abc import Iterator

import pytest

from geartrain.doors.memodb.waiting_requests import WaitingRequests
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from tests.support.fake_loop import FakeLoop

SECONDS = 10.0


class Scene:
    """Requests that have a name, and a clock that is moved by hand."""

    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.tick_loop = TickLoop(self.loop, Engine(), lambda: self.loop.now)
        self.due: list[str] = []
        self.waiting = WaitingRequests(self.tick_loop, SECONDS, self.take)

    def take(self, request: str) -> None:
        self.due.append(request)
        if request == "fails":
            raise ZeroDivisionError
        if request == "ends next":
            self.waiting.discard("next")

    def pass_time(self, seconds: float) -> list[str]:
        """What is due by then."""
        self.loop.pass_time(seconds)
        self.loop.pass_time(0)
        due, self.due = self.due, []
        return due


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.waiting.close()
    assert len(scene.tick_loop.timers) == 0
    scene.tick_loop.close()
    scene.loop.close()


def test_each_is_due_once_after_its_time(scene: Scene) -> None:
    scene.waiting.add("a")
    assert scene.pass_time(SECONDS / 2) == []
    scene.waiting.add("b")
    assert "a" in scene.waiting
    assert scene.pass_time(SECONDS / 2) == ["a"]
    assert ("a" in scene.waiting, len(scene.waiting)) == (False, 1)
    assert scene.pass_time(SECONDS / 2) == ["b"]
    assert scene.pass_time(5 * SECONDS) == []


def test_one_that_was_discarded_is_never_due(scene: Scene) -> None:
    scene.waiting.add("a")
    scene.waiting.add("b")
    scene.waiting.discard("a")
    scene.waiting.discard("nobody")
    assert scene.pass_time(SECONDS) == ["b"]


def test_one_that_waits_again_waits_for_the_whole_time(scene: Scene) -> None:
    scene.waiting.add("a")
    scene.pass_time(SECONDS / 2)
    scene.waiting.discard("a")
    scene.waiting.add("a")
    assert scene.pass_time(SECONDS / 2) == []
    assert scene.pass_time(SECONDS / 2) == ["a"]


def test_one_may_end_the_next(scene: Scene) -> None:
    for request in ("ends next", "next", "last"):
        scene.waiting.add(request)
    assert scene.pass_time(SECONDS) == ["ends next", "last"]


def test_one_that_fails_does_not_keep_the_others(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.waiting.add("fails")
    scene.waiting.add("next")
    assert scene.pass_time(SECONDS) + scene.pass_time(0.001) == ["fails", "next"]
    assert [entry.message for entry in caplog.records] == ["timer failed"]


def test_nothing_is_due_after_the_end(scene: Scene) -> None:
    scene.waiting.add("a")
    scene.waiting.close()
    assert scene.pass_time(SECONDS) == []
