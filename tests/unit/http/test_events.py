"""Queues of events are bounded, and a slow client is told how many events it missed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from geartrain.doors.http import events
from geartrain.doors.http.events import EventQueue, EventStreamCount
from geartrain.doors.http.problems import Refusal


def run(check: Coroutine[Any, Any, None]) -> None:
    asyncio.run(check)


def test_frames_are_taken_together() -> None:
    async def check() -> None:
        queue = EventQueue(asyncio.get_running_loop())
        queue.put_frame(b"one")
        queue.put_frame(b"two")
        assert queue.take() == b"onetwo"
        assert queue.take() == b""

    run(check())


@pytest.mark.parametrize(("frame", "kept"), [(b"x", events.FRAMES_MOST), (b"x" * 4096, events.BYTES_MOST // 4096)])
def test_events_above_the_limit_are_left_out_and_counted(frame: bytes, kept: int) -> None:
    async def check() -> None:
        queue = EventQueue(asyncio.get_running_loop())
        for _ in range(kept + 7):
            queue.put_frame(frame)
        taken = queue.take()
        assert taken.count(frame) == kept
        assert taken.endswith(events.frame("missed", {"missed": 7}))
        queue.put_frame(b"again")
        assert queue.take() == b"again"

    run(check())


def test_the_last_event_is_never_left_out() -> None:
    async def check() -> None:
        queue = EventQueue(asyncio.get_running_loop())
        for _ in range(events.FRAMES_MOST + 1):
            queue.put_frame(b"x")
        queue.put_frame(b"the end", last=True)
        queue.put_frame(b"too late")
        assert queue.ended
        assert b"the end" in queue.take()
        assert queue.take() == b""

    run(check())


def test_not_empty_is_done_when_there_is_an_event() -> None:
    async def check() -> None:
        queue = EventQueue(asyncio.get_running_loop())
        not_empty = queue.not_empty()
        assert not not_empty.done()
        assert queue.not_empty() is not_empty
        queue.put_frame(b"x")
        assert not_empty.done()
        assert queue.not_empty().done()
        queue.take()
        assert not queue.not_empty().done()

    run(check())


def test_not_empty_is_done_when_the_queue_has_ended() -> None:
    async def check() -> None:
        queue = EventQueue(asyncio.get_running_loop())
        queue.put_frame(b"x", last=True)
        queue.take()
        assert queue.not_empty().done()

    run(check())


def test_streams_are_counted_in_all_and_by_client() -> None:
    count = EventStreamCount(most=3, most_per_client=2)
    for client in ("a", "a", "b"):
        count.check(client)
        count.opened(client)
    with pytest.raises(Refusal, match=r"limit is http_listeners$"):
        count.check("c")
    count.closed("b")
    count.check("c")
    with pytest.raises(Refusal, match=r"of a are open: the limit is http_listeners_per_client$"):
        count.check("a")
    count.closed("a")
    count.check("a")
