"""Middleware: callables around every submission and every run. Each decides when, and whether, to proceed.

    @app.around_run
    async def log_duration(running: Running, proceed: Proceed) -> Any:
        started = time.monotonic()
        try:
            return await proceed()
        finally:
            print(running.task.name, time.monotonic() - started)

The first one that was added is the outermost.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

C = TypeVar("C")

Proceed = Callable[[], Awaitable[Any]]
Around = Callable[[C, Proceed], Awaitable[Any]]


def chain(middleware: Sequence[Around[C]], context: C, innermost: Proceed) -> Proceed:
    """One callable that calls all middleware in order, and `innermost` at the end."""
    proceed = innermost
    for around in reversed(middleware):
        proceed = _bind(around, context, proceed)
    return proceed


def _bind(around: Around[C], context: C, proceed: Proceed) -> Proceed:
    return lambda: around(context, proceed)
