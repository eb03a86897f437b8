"""When what was said leaves: once per turn of the loop, all of it together; with its read, where reads come alone."""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop, Writer


class Speaker(Writer):
    """A connection that counts how often it is flushed."""

    def __init__(self) -> None:
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1

    def commit_ended(self, ticket: int, failed: bool) -> None:
        raise AssertionError("nothing was held")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_time_is_told_once_per_turn_and_answers_leave_at_its_end(loop: asyncio.AbstractEventLoop) -> None:
    times = iter([999.0, 1000.0, 1001.0])
    engine = Engine()
    tick_loop = TickLoop(loop, engine, lambda: next(times))
    after: list[int] = []
    speakers = [Speaker(), Speaker()]
    tick_loop.after.append(lambda: after.append(sum(speaker.flushes for speaker in speakers)))
    for now, flushes in ((1000.0, 1), (1001.0, 2)):
        for speaker in speakers:
            tick_loop.begin_tick()
            tick_loop.flush_later(speaker)
        assert engine.now == now
        assert [speaker.flushes for speaker in speakers] == [flushes - 1] * 2
        turn(loop)
        assert [speaker.flushes for speaker in speakers] == [flushes] * 2
    turn(loop)
    assert after == [2, 4], "called when all are flushed, and only then"


class ReadScene:
    """Reads that each have something to write, and how much is written when."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.now = 1000.0
        self.engine = Engine()
        self.tick_loop = TickLoop(loop, self.engine, lambda: self.now)
        self.speaker = Speaker()
        self.ends = 0
        self.tick_loop.after.append(self.count_end)

    def count_end(self) -> None:
        self.ends += 1

    def read(self) -> bool:
        """Whether its answer left at once."""
        flushes = self.speaker.flushes
        self.now += 1
        is_tick = self.tick_loop.begin_read()
        self.tick_loop.flush_later(self.speaker)
        if is_tick:
            assert self.engine.now == self.now
            self.tick_loop.end_read()
        return self.speaker.flushes > flushes

    def turn(self, reads: int) -> list[bool]:
        """One turn of the loop with as many reads."""
        at_once = [self.read() for _ in range(reads)]
        turn(self.loop)
        return at_once


@pytest.fixture
def scene(loop: asyncio.AbstractEventLoop) -> ReadScene:
    return ReadScene(loop)


def test_ticks_end_with_their_read_while_reads_come_one_by_one(scene: ReadScene) -> None:
    at_once = [scene.turn(1)[0] for _ in range(21 + 17)]
    assert at_once == [False] * 4 + [True] * 16 + [False] + [True] * 16 + [False]
    assert scene.speaker.flushes == scene.ends == len(at_once), "each read is a tick, whoever ends it"


def test_reads_that_come_together_are_one_tick_again(scene: ReadScene) -> None:
    for _ in range(4):
        scene.turn(1)
    assert scene.turn(16) == [True] * 16, "nobody knows yet that they come together"
    for _ in range(3):
        ends = scene.ends
        assert scene.turn(2) == [False, False]
        assert scene.ends == ends + 1
    assert [scene.turn(1)[0] for _ in range(5)] == [False] * 4 + [True]


def test_a_read_within_a_tick_does_not_end_it(scene: ReadScene) -> None:
    for _ in range(4):
        scene.turn(1)
    scene.tick_loop.begin_tick()
    now = scene.engine.now
    assert not scene.read()
    assert scene.engine.now == now
    turn(scene.loop)
    assert scene.turn(1) == [True]
