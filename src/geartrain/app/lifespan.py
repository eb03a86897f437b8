"""What an app does when a worker process starts and stops: its lifespan, and functions of its own.

    @contextlib.asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[None]:
        app.state.database = await connect()
        yield
        await app.state.database.close()

    app = App("shop", lifespan=lifespan)

The functions of `on_startup` run after the beginning of the lifespan, those of `on_shutdown` before its end, both in
the order in which they were added.
"""

import contextlib
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geartrain.app.app import App

Hook = Callable[[], Any]  # plain or async
Lifespan = Callable[["App"], AbstractAsyncContextManager[Any]]

_log = logging.getLogger("geartrain.app")


@contextlib.asynccontextmanager
async def running(app: "App") -> AsyncIterator[None]:
    """Run the app's startup, and at the end of the block its shutdown."""
    context = app.lifespan(app) if app.lifespan is not None else contextlib.nullcontext()
    async with context:
        for hook in app.startup_hooks:
            await _call(hook)
        try:
            yield
        finally:
            await _shut_down(app.shutdown_hooks)


async def _shut_down(hooks: Sequence[Hook]) -> None:
    """Call each function, also if another one fails: they release different things."""
    for hook in hooks:
        try:
            await _call(hook)
        except Exception:
            _log.exception("shutdown function failed: %s", getattr(hook, "__qualname__", hook))


async def _call(hook: Hook) -> None:
    result = hook()
    if inspect.isawaitable(result):
        await result
