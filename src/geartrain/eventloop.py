"""The event loop: uvloop where it is installed, else asyncio's own."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple


class EventLoop(NamedTuple):
    """Which loop it is, and how one is made."""

    name: str
    factory: Callable[[], asyncio.AbstractEventLoop]


def best() -> EventLoop:
    """The fastest there is here."""
    try:
        import uvloop
    except ImportError:
        return EventLoop("asyncio", asyncio.new_event_loop)
    return EventLoop("uvloop", uvloop.new_event_loop)
