"""The event loop: uvloop where it is installed, else asyncio's own."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple


class Loop(NamedTuple):
    """Which loop it is, and how one is made."""

    name: str
    factory: Callable[[], asyncio.AbstractEventLoop]


def best() -> Loop:
    """The fastest there is here."""
    try:
        import uvloop
    except ImportError:
        return Loop("asyncio", asyncio.new_event_loop)
    return Loop("uvloop", uvloop.new_event_loop)
