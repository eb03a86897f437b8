"""One attempt at a task: read the call, run the function inside the middleware and its time limit, write the result."""

import asyncio
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from geartrain.app import context, middleware
from geartrain.app.context import Assigned, Running
from geartrain.app.middleware import Around
from geartrain.app.task import CoroutineTask, Task
from geartrain.app.threads import Threads


class Ending(NamedTuple):
    """How an attempt ended: with a result, or with an error."""

    result: bytes
    error: Exception | None = None
    running: Running | None = None  # None: it did not come so far


class Runner:
    """Runs attempts; it never raises, so that no task can bring a worker down."""

    def __init__(self, around: Sequence[Around[Running]], threads: Threads) -> None:
        self._around = around
        self._threads = threads

    async def run(self, task: Task[Any, Any], job: Assigned) -> Ending:
        """One attempt."""
        running: Running | None = None
        try:
            running = opened(task, job)
            token = context.enter(running)
            try:
                value = await self._perform(running)
            finally:
                context.leave(token)
            return Ending(written(running, value), None, running)
        except Exception as error:
            return Ending(b"", error, running)

    async def _perform(self, running: Running) -> Any:
        if not self._around:
            return await self._function(running)
        return await middleware.chained(self._around, running, lambda: self._function(running))()

    async def _function(self, running: Running) -> Any:
        task = running.task
        limit = task.terms.timeout
        if not isinstance(task, CoroutineTask):
            return await self._in_thread(running, limit)
        if not limit:
            return await task.function(*running.args, **running.kwargs)
        try:
            async with asyncio.timeout(limit) as clock:
                return await task.function(*running.args, **running.kwargs)
        except TimeoutError:
            if clock.expired():
                raise _overdue(running, limit) from None
            raise

    async def _in_thread(self, running: Running, limit: float) -> Any:
        future = self._threads.run(functools.partial(running.task.function, *running.args, **running.kwargs))
        if not limit:
            return await future
        done, _ = await asyncio.wait((future,), timeout=limit)
        if not done:
            future.cancel()  # what it returns one day is nobody's
            raise _overdue(running, limit)
        return future.result()


def opened(task: Task[Any, Any], job: Assigned) -> Running:
    """The call in a job's payload; ArgumentsError if it is none."""
    found = task.reader.read(job.payload)
    if found is None:
        codec = task.codec
        return Running(task, job, None, codec, task.parameters.read_single(codec, job.payload), {})
    call, codec = found
    args, kwargs = task.parameters.read(codec, call.args, call.kwargs)
    return Running(task, job, call, codec, args, kwargs)


def written(running: Running, value: Any) -> bytes:
    """The result in the language of the call. Who sent no envelope gets bytes and text as they are."""
    if running.call is not None:
        return running.codec.encode(value)
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else running.codec.encode(value)


def _overdue(running: Running, limit: float) -> TimeoutError:
    running.overdue = True
    return TimeoutError(f"it ran longer than the {limit:g} seconds that it may take")
