"""When what was said leaves: once per turn of the loop, all of it together."""

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
