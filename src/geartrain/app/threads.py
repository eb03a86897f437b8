"""Threads for plain functions: as many as are busy at once, and none that keeps the program from exiting."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

_Work = tuple[contextvars.Context, Callable[[], Any], "asyncio.Future[Any]"]


class DaemonThreads:
    """A pool of daemon threads. The standard pool waits for its threads at exit, and a function that hangs never ends.

    A thread is started when none is idle; the caller limits how many functions run at once.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle = 0
        self._started = 0
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()

    def run(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Call the function in a thread, in a copy of the current context."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._started += 1
                threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        self._queue.put((contextvars.copy_context(), function, future))
        return future

    def close(self) -> None:
        """Let the threads end; busy ones end when their function returns."""
        for _ in range(self._started):
            self._queue.put(None)

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            context, function, future = work
            result: Any = None
            failure: BaseException | None = None
            try:
                result = context.run(function)
            except BaseException as error:  # SystemExit too: it must not end this thread
                failure = error
            with self._lock:
                self._idle += 1
            _deliver(future, result, failure)
            del work, context, function, future, result, failure  # an idle thread keeps no references


def _deliver(future: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    try:
        future.get_loop().call_soon_threadsafe(_complete, future, result, failure)
    except RuntimeError:
        pass  # the loop is closed: nothing waits for the result


def _complete(future: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    elif isinstance(failure, StopIteration | KeyboardInterrupt | SystemExit):
        future.set_exception(
            RuntimeError(f"the function raised {type(failure).__name__}")
        )  # futures do not accept these
    else:
        future.set_exception(failure)
