"""Timers: each callback comes at its time, once, and those that were cancelled do not."""

from collections.abc import Iterator

import pytest

from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall, Timers
from tests.support.fake_loop import FakeLoop


@pytest.fixture
def loop() -> Iterator[FakeLoop]:
    loop = FakeLoop()
    yield loop
    loop.close()


@pytest.fixture
def tick_loop(loop: FakeLoop) -> Iterator[TickLoop]:
    tick_loop = TickLoop(loop, Engine(), lambda: loop.now)
    yield tick_loop
    tick_loop.close()


@pytest.fixture
def timers(tick_loop: TickLoop) -> Timers:
    return tick_loop.timers


@pytest.fixture
def called() -> list[str]:
    return []


def test_calls_come_in_the_order_of_their_times(loop: FakeLoop, timers: Timers, called: list[str]) -> None:
    timers.call_later(10, lambda: called.append("late"))
    timers.call_later(5, lambda: called.append("early"))
    timers.call_later(5, lambda: called.append("second"))
    assert len(timers) == 3
    loop.pass_time(4.9)
    assert called == []
    loop.pass_time(0.2)
    assert called == ["early", "second"]
    loop.pass_time(5)
    assert called == ["early", "second", "late"]
    assert len(timers) == 0


def test_the_engine_has_the_time_of_the_call(loop: FakeLoop, tick_loop: TickLoop) -> None:
    times: list[float] = []
    tick_loop.timers.call_later(5, lambda: times.append(tick_loop.engine.now))
    loop.pass_time(7)
    assert times == [1007.0]


def test_a_cancelled_call_does_not_come(loop: FakeLoop, timers: Timers, called: list[str]) -> None:
    call = timers.call_later(5, lambda: called.append("cancelled"))
    timers.call_later(6, lambda: called.append("other"))
    call.cancel()
    call.cancel()
    assert len(timers) == 1
    loop.pass_time(10)
    assert called == ["other"]
    call.cancel()
    assert len(timers) == 0


def test_cancelled_calls_do_not_pile_up(timers: Timers) -> None:
    for _ in range(10_000):
        timers.call_later(5, lambda: None).cancel()
    assert len(timers) == 0
    assert len(timers._heap) < 200


def test_a_call_may_set_the_next(loop: FakeLoop, timers: Timers, called: list[str]) -> None:
    def again() -> None:
        called.append("again")
        timers.call_later(1, again)

    timers.call_later(1, again)
    for _ in range(5):
        loop.pass_time(1)
    assert len(called) == 5


def test_a_call_may_cancel_another_that_is_due(loop: FakeLoop, timers: Timers, called: list[str]) -> None:
    calls: list[DelayedCall] = []
    timers.call_later(1, lambda: calls[0].cancel())
    calls.append(timers.call_later(1, lambda: called.append("cancelled")))
    loop.pass_time(2)
    assert called == []
    assert len(timers) == 0


def test_a_call_that_fails_keeps_no_other_from_coming(
    loop: FakeLoop, timers: Timers, called: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("a bug")

    timers.call_later(1, fail)
    timers.call_later(1, lambda: called.append("other"))
    timers.call_later(2, lambda: called.append("later"))
    loop.pass_time(1)
    loop.pass_time(1)
    assert called == ["other", "later"]
    assert "a bug" in caplog.text


def test_no_calls_after_closing(loop: FakeLoop, timers: Timers, called: list[str]) -> None:
    timers.call_later(1, lambda: called.append("before"))
    timers.close()
    timers.call_later(1, lambda: called.append("after"))
    loop.pass_time(5)
    assert called == []


def test_the_engine_is_called_at_its_deadline(loop: FakeLoop, tick_loop: TickLoop) -> None:
    engine = tick_loop.begin_tick()
    engine.submit(b"f", background=True, run_at=1010.0)
    loop.pass_time(0)
    assert engine.functions[b"f"].scheduled == 1
    loop.pass_time(10)
    assert (engine.functions[b"f"].scheduled, engine.functions[b"f"].queued) == (0, 1)
