"""Middleware: callables around every submission and every run. Each decides when, and whether, to proceed.

    @app.around_run
    async def log_duration(running: Running, proceed: Proceed) -> Any:
        started = time.monotonic()
        try:
            return await proceed()
        finally:
            print(running.task.name, time.monotonic() - started)

The first one that was added is the outermost. A `Middleware` object is for code that needs both places, or settings.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from geartrain.app.call import Call
    from geartrain.app.context import Running

C = TypeVar("C")

Proceed = Callable[[], Awaitable[Any]]
Around = Callable[[C, Proceed], Awaitable[Any]]


class Middleware:
    """Middleware as an object, for `app.add_middleware`: override one method or both.

    >>> from geartrain.app import App
    >>> from geartrain.testing import InMemory
    >>> class Tenant(Middleware):
    ...     def __init__(self, name: str) -> None:
    ...         self.name = name
    ...     async def around_submit(self, call, proceed):
    ...         call.meta["tenant"] = self.name
    ...         return await proceed()
    ...     async def around_run(self, running, proceed):
    ...         print("for", running.meta["tenant"])
    ...         return await proceed()
    >>> app = App("shop")
    >>> app.add_middleware(Tenant("Ada's"))
    >>> @app.task
    ... def greet() -> str:
    ...     return "Hello"
    >>> with app, InMemory(app):
    ...     greet.call_sync()
    for Ada's
    'Hello'
    """

    async def around_submit(self, call: "Call[Any]", proceed: Proceed) -> Any:
        """Called around every submission; `await proceed()` returns its TaskHandle."""
        return await proceed()

    async def around_run(self, running: "Running", proceed: Proceed) -> Any:
        """Called around every run of a task in a worker; `await proceed()` returns its result."""
        return await proceed()


def chain(middleware: Sequence[Around[C]], context: C, innermost: Proceed) -> Proceed:
    """One callable that calls all middleware in order, and `innermost` at the end."""
    proceed = innermost
    for around in reversed(middleware):
        proceed = _bind(around, context, proceed)
    return proceed


def _bind(around: Around[C], context: C, proceed: Proceed) -> Proceed:
    return lambda: around(context, proceed)
