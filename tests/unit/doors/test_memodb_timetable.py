"""The MemoDB door's timetable: what is due comes at its time, once, and what was struck off does not."""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.doors.memodb.timetable import NOT_DUE, Timetable
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop


class FakeLoop(asyncio.SelectorEventLoop):
    """A loop whose clock is moved by hand."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(2):
            self.call_soon(self.stop)
            self.run_forever()


class Item:
    """Notes when it comes due."""

    def __init__(self, loop: FakeLoop) -> None:
        self.loop = loop
        self.due_at = NOT_DUE
        self.came: list[float] = []

    def due(self) -> None:
        assert self.due_at == NOT_DUE
        self.came.append(self.loop.now)


@pytest.fixture
def loop() -> Iterator[FakeLoop]:
    loop = FakeLoop()
    yield loop
    loop.close()


@pytest.fixture
def table(loop: FakeLoop) -> Iterator[Timetable]:
    tick_loop = TickLoop(loop, Engine(), lambda: loop.now)
    table = Timetable(tick_loop)
    yield table
    table.close()
    tick_loop.close()


def test_in_order(loop: FakeLoop, table: Timetable) -> None:
    late, early = Item(loop), Item(loop)
    table.put(late, 10)
    table.put(early, 5)
    assert len(table) == 2
    loop.pass_time(4.9)
    assert early.came == []
    loop.pass_time(0.2)
    assert (len(early.came), late.came) == (1, [])
    loop.pass_time(5)
    assert (len(early.came), len(late.came)) == (1, 1)
    assert len(table) == 0


def test_another_time_replaces_the_first(loop: FakeLoop, table: Timetable) -> None:
    item = Item(loop)
    table.put(item, 5)
    table.put(item, 20)
    assert len(table) == 1
    loop.pass_time(10)
    assert item.came == []
    loop.pass_time(11)
    assert len(item.came) == 1


def test_struck_off(loop: FakeLoop, table: Timetable) -> None:
    item, other = Item(loop), Item(loop)
    table.put(item, 5)
    table.put(other, 6)
    table.strike(item)
    table.strike(item)
    assert len(table) == 1
    loop.pass_time(10)
    assert (item.came, len(other.came)) == ([], 1)


def test_what_was_struck_off_is_let_go_of(loop: FakeLoop, table: Timetable) -> None:
    for _ in range(10_000):
        item = Item(loop)
        table.put(item, 5)
        table.strike(item)
    assert len(table) == 0
    assert len(table._entries) < 200


def test_due_again_from_within(loop: FakeLoop, table: Timetable) -> None:
    class Again(Item):
        def due(self) -> None:
            super().due()
            table.put(self, 1)

    item = Again(loop)
    table.put(item, 1)
    for _ in range(5):
        loop.pass_time(1)
    assert len(item.came) == 5


def test_one_may_strike_off_another_that_is_due_as_well(loop: FakeLoop, table: Timetable) -> None:
    other = Item(loop)

    class Striking(Item):
        def due(self) -> None:
            super().due()
            table.strike(other)

    item = Striking(loop)
    table.put(item, 1)
    table.put(other, 1)
    loop.pass_time(2)
    assert (len(item.came), other.came) == (1, [])
    assert len(table) == 0


def test_closed(loop: FakeLoop, table: Timetable) -> None:
    item = Item(loop)
    table.put(item, 1)
    table.close()
    table.put(item, 1)
    loop.pass_time(5)
    assert item.came == []
