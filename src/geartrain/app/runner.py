"""One attempt at a task: decode the call, run the function with middleware and timeout, encode the result."""

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from geartrain.app import context, middleware, parent_results, task_log
from geartrain.app.codecs import Codec
from geartrain.app.context import Running, TaskJob
from geartrain.app.dependencies import DependencyPlan
from geartrain.app.envelope import Envelope
from geartrain.app.middleware import Around
from geartrain.app.task import CoroutineTask, Task
from geartrain.app.threads import DaemonThreads


class AttemptResult(NamedTuple):
    """The result of an attempt, or its error."""

    result: bytes
    error: Exception | None = None
    running: Running | None = None  # None: the payload could not be decoded
    started_at: float = 0.0  # epoch seconds
    log: str = ""  # what is kept of it with the job
    envelope: Envelope | None = None  # of a failed attempt, if the payload has one


class TaskRunner:
    """Runs attempts. It never raises, so that no task can end the worker."""

    def __init__(self, around: Sequence[Around[Running]], threads: DaemonThreads) -> None:
        self._around = around
        self._threads = threads

    async def run(self, task: Task[Any, Any], job: TaskJob) -> AttemptResult:
        """Make one attempt, and collect its log if the task wants that."""
        if not task.log_level:
            return await self._run(task, job)
        with task_log.collected(task.log_level, job.attempt) as log:
            result = await self._run(task, job)
        return result._replace(log=log.text())

    async def _run(self, task: Task[Any, Any], job: TaskJob) -> AttemptResult:
        running: Running | None = None
        envelope: Envelope | None = None
        started_at = time.time()
        try:
            decoded = task.reader.read(job.payload)
            if decoded is not None:
                envelope = decoded[0]
                if envelope.results:
                    await parent_results.fetch(task, job, *decoded)
            running = decode_call(task, job, decoded)
            token = context.enter(running)
            try:
                value = await self._with_middleware(running)
            finally:
                context.leave(token)
            return AttemptResult(encode_result(running, value), None, running, started_at)
        except Exception as error:
            return AttemptResult(b"", error, running, started_at, envelope=envelope)

    async def _with_middleware(self, running: Running) -> Any:
        if not self._around:
            return await self._function(running)
        return await middleware.chain(self._around, running, lambda: self._function(running))()

    async def _function(self, running: Running) -> Any:
        task = running.task
        timeout = task.timeout
        if not isinstance(task, CoroutineTask):
            return await self._plain_function(running, timeout)
        if not timeout:
            return await self._coroutine(task, running)
        try:
            async with asyncio.timeout(timeout) as deadline:
                return await self._coroutine(task, running)
        except TimeoutError:
            if deadline.expired():
                raise _timed_out(running, timeout) from None
            raise

    async def _coroutine(self, task: CoroutineTask[Any, Any], running: Running) -> Any:
        plan = task.plan
        if plan is None:
            return await task.function(*running.args, **running.kwargs)
        async with plan.resolved(running.kwargs, self._threads.run) as values:
            return await task.function(*running.args, **running.kwargs, **values)

    async def _plain_function(self, running: Running, timeout: float) -> Any:
        """A plain function runs in one thread with its plain dependencies; async ones are made on the loop."""
        plan = running.task.plan
        call = functools.partial(running.task.function, *running.args, **running.kwargs)
        if plan is None:
            return await self._in_thread(call, running, timeout)
        if not plan.is_async:
            return await self._in_thread(functools.partial(_with_dependencies, plan, call), running, timeout)
        async with plan.resolved(running.kwargs, self._threads.run) as values:
            return await self._in_thread(functools.partial(call, **values), running, timeout)

    async def _in_thread(self, call: Callable[[], Any], running: Running, timeout: float) -> Any:
        future = self._threads.run(call)
        if not timeout:
            return await future
        done, _ = await asyncio.wait((future,), timeout=timeout)
        if not done:
            future.cancel()  # the thread's result is ignored
            raise _timed_out(running, timeout)
        return future.result()


def _with_dependencies(plan: DependencyPlan, call: functools.partial[Any]) -> Any:
    with plan.resolved_sync(call.keywords) as values:
        return call(**values)


def decode_call(task: Task[Any, Any], job: TaskJob, decoded: tuple[Envelope, Codec] | None) -> Running:
    """The call in a job's payload, which is an envelope or not; ArgumentsError if it does not fit the task."""
    if decoded is None:
        args = task.parameters.read_single(task.codec, job.payload)
        return Running(task, job, envelope=None, codec=task.codec, args=args, kwargs={})
    envelope, codec = decoded
    read = task.parameters.read_with_failures if envelope.results else task.parameters.read
    arguments, keywords = read(codec, envelope.args, envelope.kwargs)
    return Running(task, job, envelope=envelope, codec=codec, args=arguments, kwargs=keywords)


def encode_result(running: Running, value: Any) -> bytes:
    """Encode the result with the codec of the call. For a payload without envelope, bytes and text stay as they are."""
    if running.envelope is not None:
        return running.codec.encode(value)
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else running.codec.encode(value)


def _timed_out(running: Running, timeout: float) -> TimeoutError:
    running.overdue = True
    return TimeoutError(f"timed out after {timeout:g} seconds")
