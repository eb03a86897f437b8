"""Feeds: nothing is kept without bound, and whoever is too slow hears that it missed something."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from geartrain.doors.http import events
from geartrain.doors.http.events import Feed


def run(check: Coroutine[Any, Any, None]) -> None:
    asyncio.run(check)


def test_frames_are_taken_together() -> None:
    async def check() -> None:
        feed = Feed(asyncio.get_running_loop())
        feed.say(b"one")
        feed.say(b"two")
        assert feed.take() == b"onetwo"
        assert feed.take() == b""

    run(check())


@pytest.mark.parametrize(("frame", "kept"), [(b"x", events.FRAMES_KEPT), (b"x" * 4096, events.BYTES_KEPT // 4096)])
def test_what_is_too_much_is_left_out_and_counted(frame: bytes, kept: int) -> None:
    async def check() -> None:
        feed = Feed(asyncio.get_running_loop())
        for _ in range(kept + 7):
            feed.say(frame)
        taken = feed.take()
        assert taken.count(frame) == kept
        assert taken.endswith(events.frame("missed", {"missed": 7}))
        feed.say(b"again")
        assert feed.take() == b"again"

    run(check())


def test_the_last_frame_is_never_left_out_and_nothing_comes_after_it() -> None:
    async def check() -> None:
        feed = Feed(asyncio.get_running_loop())
        for _ in range(events.FRAMES_KEPT + 1):
            feed.say(b"x")
        feed.say(b"the end", last=True)
        feed.say(b"too late")
        assert feed.ended
        assert b"the end" in feed.take()
        assert feed.take() == b""

    run(check())


def test_news_is_done_when_there_is_something_to_take() -> None:
    async def check() -> None:
        feed = Feed(asyncio.get_running_loop())
        news = feed.news()
        assert not news.done()
        assert feed.news() is news
        feed.say(b"x")
        assert news.done()
        assert feed.news().done()
        feed.take()
        assert not feed.news().done()

    run(check())


def test_an_end_is_news() -> None:
    async def check() -> None:
        feed = Feed(asyncio.get_running_loop())
        feed.say(b"x", last=True)
        feed.take()
        assert feed.news().done()

    run(check())
