"""Callables around every submission and every run, each of which decides when, and whether, to go on.

    @app.around_run
    async def timed(running: Running, proceed: Proceed) -> Any:
        began = time.monotonic()
        try:
            return await proceed()
        finally:
            print(running.task.name, time.monotonic() - began)

The first that was added is the outermost.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

C = TypeVar("C")

Proceed = Callable[[], Awaitable[Any]]
Around = Callable[[C, Proceed], Awaitable[Any]]


def chained(middleware: Sequence[Around[C]], context: C, innermost: Proceed) -> Proceed:
    """One callable that goes through all of them and then does the thing itself."""
    proceed = innermost
    for around in reversed(middleware):
        proceed = _link(around, context, proceed)
    return proceed


def _link(around: Around[C], context: C, proceed: Proceed) -> Proceed:
    return lambda: around(context, proceed)
