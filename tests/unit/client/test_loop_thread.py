"""A loop in a thread: calls go in, results and errors come out, and nothing is left behind."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from geartrain.client.loop_thread import LoopThread
from geartrain.errors import ClientError
from tests.support.client_threads import client_threads


async def nothing() -> None:
    pass


def test_results_and_errors() -> None:
    loop = LoopThread()

    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    async def fail() -> None:
        raise KeyError("no")

    assert loop.call(add(1, 2)) == 3
    with pytest.raises(KeyError, match="no"):
        loop.call(fail())
    loop.end(nothing())


def test_an_iterator_that_is_left_early_is_closed() -> None:
    loop = LoopThread()
    closed = threading.Event()

    async def count() -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield number
        finally:
            closed.set()

    assert list(loop.iterate(count())) == list(range(10))
    closed.clear()
    numbers = loop.iterate(count())
    assert next(numbers) == 0
    numbers.close()  # type: ignore[attr-defined]
    assert closed.is_set()
    loop.end(nothing())


def test_after_the_end_calls_are_refused_and_the_thread_is_gone() -> None:
    before = client_threads()
    loop = LoopThread()
    loop.call(nothing())
    assert client_threads() > before
    loop.end(nothing())
    assert client_threads() <= before
    with pytest.raises(ClientError, match="closed"):
        loop.call(nothing())
    loop.end(nothing())


def test_the_last_words_are_spoken_and_may_fail() -> None:
    loop = LoopThread()
    loop.call(nothing())
    spoken = threading.Event()

    async def last() -> None:
        spoken.set()
        raise OSError("too late")

    loop.end(last())
    assert spoken.is_set()
