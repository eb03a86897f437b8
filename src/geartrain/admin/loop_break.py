"""Long lists for operators, made in slices between which the event loop serves others.

What is listed may change between two slices: an item that comes or goes meanwhile may be missing or listed.
"""

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

SLICE: Final = 250  # items between two readings of the clock
_SLICE_SECONDS: Final = 0.004
_RUN: Final = 2000  # items that are sorted at once

Item = TypeVar("Item")


class LoopBreak:
    """Lets other tasks of the event loop run when this one has run for some milliseconds."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def take(self) -> None:
        """Continue at once, or after one iteration of the loop."""
        if time.perf_counter() - self._began > _SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


async def select(items: Sequence[Item], matches: Callable[[Item], bool], most: int | None = None) -> list[Item]:
    """The items that match, or the first of them if there is a limit."""
    selected: list[Item] = []
    loop_break = LoopBreak()
    for start in range(0, len(items), SLICE):
        selected += filter(matches, items[start : start + SLICE])
        if most is not None and len(selected) >= most:
            return selected[:most]
        await loop_break.take()
    return selected


async def page_of(items: Sequence[Item], key: Callable[[Item], Any], start: int, stop: int) -> list[Item]:
    """The items at these positions in the order of a key. They are sorted in runs, which are merged up to the page."""
    runs: list[list[Item]] = []
    loop_break = LoopBreak()
    for begin in range(0, len(items), _RUN):
        runs.append(sorted(items[begin : begin + _RUN], key=key))
        await loop_break.take()
    page: list[Item] = []
    for place, item in zip(range(stop), heapq.merge(*runs, key=key), strict=False):
        if place >= start:
            page.append(item)
        if not place % SLICE:
            await loop_break.take()
    return page


async def convert(items: Iterable[Item], view: Callable[[Item], Any]) -> list[Any]:
    """What operators see of each item."""
    views = []
    loop_break = LoopBreak()
    for item in items:
        views.append(view(item))
        await loop_break.take()
    return views
