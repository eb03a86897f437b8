"""The worker for programs without asyncio: the async worker, run by a loop of its own.

worker = Worker("gearman://127.0.0.1:4730", concurrency=4)

@worker.function("reverse")
def reverse(job):
    return job.payload[::-1]

worker.run()
"""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable
from typing import TypeVar

from geartrain import eventloop
from geartrain.client.arguments import Duration, Text
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Function

F = TypeVar("F", bound=Function)


class Worker:
    """A worker whose functions are plain ones, run in threads, or processes with `mode="process"`."""

    def __init__(
        self,
        *urls: str,
        concurrency: int = 1,
        prefetch: int = 0,
        name: str = "",
        mode: str = "thread",
        tracebacks: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """As for `AsyncWorker`."""
        self._worker = AsyncWorker(
            *urls, concurrency=concurrency, prefetch=prefetch, name=name, mode=mode, tracebacks=tracebacks, tls=tls
        )
        self._loop: asyncio.AbstractEventLoop | None = None  # while it works
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._worker.name

    def register(self, function: Text, call: Function, *, timeout: Duration = 0.0, mode: str = "") -> None:
        """Offer a function; also while it works. `timeout` is how long one of its jobs may take."""
        self._do(lambda: self._worker.register(function, call, timeout=timeout, mode=mode))

    def unregister(self, function: Text) -> None:
        """Offer a function no longer; what runs of it goes on."""
        self._do(lambda: self._worker.unregister(function))

    def function(self, name: Text = "", *, timeout: Duration = 0.0, mode: str = "") -> Callable[[F], F]:
        """The same as a decorator; without a name, the function's own."""

        def remember(call: F) -> F:
            self.register(name or getattr(call, "__name__", ""), call, timeout=timeout, mode=mode)
            return call

        return remember

    def run(self, signals: bool = True, ready: Callable[[], None] | None = None) -> None:
        """Work until `stop`, SIGTERM or SIGINT; then finish what runs. `ready` is called when it works everywhere.

        In a thread other than the main one, signals are left alone.
        """
        with asyncio.Runner(loop_factory=eventloop.best().factory) as runner:
            self._loop = runner.get_loop()
            try:
                runner.run(self._work(signals, ready))
            finally:
                with self._lock:
                    self._loop = None

    def stop(self) -> None:
        """Finish what runs and end; the second time, end at once. From any thread."""
        self._do(self._worker.stop)

    async def _work(self, signals: bool, ready: Callable[[], None] | None) -> None:
        announcing = asyncio.create_task(self._announce(ready)) if ready is not None else None
        try:
            await self._worker.run(signals)
        finally:
            if announcing is not None:
                announcing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await announcing

    async def _announce(self, ready: Callable[[], None]) -> None:
        await self._worker.ready()
        ready()

    def _do(self, call: Callable[[], None]) -> None:
        """Here, or on the loop that is running the worker in another thread."""
        with self._lock:
            if self._loop is None:
                call()
            else:
                self._loop.call_soon_threadsafe(call)
