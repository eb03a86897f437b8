"""The event loop: uvloop where it is installed, else asyncio's own."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple


class EventLoop(NamedTuple):
    """An implementation of asyncio's loop: its name, and the function that makes one."""

    name: str
    factory: Callable[[], asyncio.AbstractEventLoop]


def best() -> EventLoop:
    """The fastest implementation that is installed."""
    try:
        import uvloop
    except ImportError:
        return EventLoop("asyncio", asyncio.new_event_loop)
    return EventLoop("uvloop", uvloop.new_event_loop)
