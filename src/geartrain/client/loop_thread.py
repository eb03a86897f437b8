"""An event loop in a thread of its own, on which the plain client runs the async one.

>>> loop = LoopThread()
>>> loop.call(asyncio.sleep(0, "slept"))
'slept'
>>> loop.end(asyncio.sleep(0))
"""

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

from geartrain import eventloop
from geartrain.errors import ClientError

T = TypeVar("T")

_LAST_SECONDS: Final = 15.0  # for the last coroutine, which closes connections and is bounded itself


class LoopThread:
    """A running event loop, started by the first call. It cannot be used in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._closed = False

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result; an interrupt cancels it."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._running())
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except BaseException as error:
            if not future.done():
                future.cancel()
                with contextlib.suppress(concurrent.futures.CancelledError, Exception):
                    future.result()
            # Without the loop's frames: the caller's say where, and another call may raise the same error object.
            raise error.with_traceback(None) from error.__cause__

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an async iterator."""
        try:
            while True:
                try:
                    yield self.call(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            close: Callable[[], Coroutine[Any, Any, None]] | None = getattr(source, "aclose", None)
            if close is not None and not self._closed:
                self.call(close())

    def end(self, last: Coroutine[Any, Any, None]) -> None:
        """Run one last coroutine, stop the loop and end the thread. Later calls raise a ClientError."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or self._pid != os.getpid():
            last.close()
            return
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(last, loop).result(_LAST_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise ClientError("the client is closed")
            if self._loop is None or self._thread is None:
                self._pid = os.getpid()
                self._loop = eventloop.best().factory()
                self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="geartrain-client")
                self._thread.start()
            elif self._pid != os.getpid():
                raise ClientError("a client cannot be used after a fork: make a new one in the child process")
            return self._loop


async def _next(source: AsyncIterator[T]) -> T:
    return await source.__anext__()
