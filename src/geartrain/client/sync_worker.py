"""The worker for programs without asyncio: the async worker, run by an event loop of its own."""

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
    """A worker whose functions are plain ones: they run in threads, or with `mode="process"` in processes.

    worker = Worker("gearman://127.0.0.1:4730", concurrency=4)

    @worker.function("reverse")
    def reverse(job):
        return job.payload[::-1]

    worker.run()
    """

    def __init__(
        self,
        *urls: str,
        concurrency: int = 1,
        prefetch: int = 0,
        name: str = "",
        mode: str = "thread",
        tracebacks: bool = False,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        """The arguments are those of `AsyncWorker`."""
        self._worker = AsyncWorker(
            *urls, concurrency=concurrency, prefetch=prefetch, name=name, mode=mode, tracebacks=tracebacks, tls=tls,
            token=token,
        )  # fmt: skip
        self._loop: asyncio.AbstractEventLoop | None = None  # while `run` runs
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._worker.name

    def register(
        self, function: Text, call: Function, *, timeout: Duration = 0.0, mode: str = "", max_share: float = 1.0
    ) -> None:
        """Run jobs of this function; may be called at any time. `timeout` is how long one of its jobs may take.

        Its jobs take at most `max_share` of the worker's slots, but at least one.
        """
        self._do(lambda: self._worker.register(function, call, timeout=timeout, mode=mode, max_share=max_share))

    def unregister(self, function: Text) -> None:
        """Take no more jobs of this function; running ones go on."""
        self._do(lambda: self._worker.unregister(function))

    def function(
        self, name: Text = "", *, timeout: Duration = 0.0, mode: str = "", max_share: float = 1.0
    ) -> Callable[[F], F]:
        """Register the decorated function; the default name is its own."""

        def decorate(call: F) -> F:
            self.register(name or getattr(call, "__name__", ""), call, timeout=timeout, mode=mode, max_share=max_share)
            return call

        return decorate

    def run(self, signals: bool = True, ready: Callable[[], None] | None = None) -> None:
        """Run jobs until `stop`, SIGTERM or SIGINT, then finish the running ones.

        `ready` is called when all servers are connected. Outside the main thread, signals are ignored.
        """
        with asyncio.Runner(loop_factory=eventloop.best().factory) as runner:
            self._loop = runner.get_loop()
            try:
                runner.run(self._work(signals, ready))
            finally:
                with self._lock:
                    self._loop = None

    def stop(self) -> None:
        """Finish the running jobs and end; the second time, end at once. Any thread may call this."""
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
        """Call now, or on the loop that runs the worker in another thread."""
        with self._lock:
            if self._loop is None:
                call()
            else:
                self._loop.call_soon_threadsafe(call)
