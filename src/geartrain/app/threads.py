"""Threads for plain functions: as many as are busy at once, and none that keeps the program from ending."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

_Work = tuple[contextvars.Context, Callable[[], Any], "asyncio.Future[Any]"]


class Threads:
    """The standard pools wait for their threads at the program's end, so a function that hangs would hang it.

    These threads are daemons, made when there is no idle one; whoever submits bounds how many that can be.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle = 0
        self._made = 0
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()

    def run(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Have it called in a thread, in a copy of this context."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._made += 1
                threading.Thread(target=self._serve, name=f"{self._name}-{self._made}", daemon=True).start()
        self._queue.put((contextvars.copy_context(), function, future))
        return future

    def close(self) -> None:
        """Let go of the threads; those that are busy end when they are done."""
        for _ in range(self._made):
            self._queue.put(None)

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            context, function, future = work
            result: Any = None
            failure: BaseException | None = None
            try:
                result = context.run(function)
            except BaseException as error:  # SystemExit too: it is the function's failure, not this thread's end
                failure = error
            with self._lock:
                self._idle += 1
            _tell(future, result, failure)
            del work, context, function, future, result, failure  # an idle thread holds on to nothing


def _tell(future: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    try:
        future.get_loop().call_soon_threadsafe(_settle, future, result, failure)
    except RuntimeError:
        pass  # the loop is closed: nobody waits any more


def _settle(future: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    elif isinstance(failure, StopIteration | KeyboardInterrupt | SystemExit):
        future.set_exception(RuntimeError(f"the function raised {type(failure).__name__}"))  # a future refuses these
    else:
        future.set_exception(failure)
