"""Threads that run plain functions for a worker, so that its event loop stays free.

Calls from the threads reach the loop in batches: one wake-up of the loop for everything since the last.
"""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from geartrain.client import execution
from geartrain.client.execution import JobOutcome
from geartrain.client.job import Function, Job

Ended = Callable[[JobOutcome], None]
WorkItem = tuple[Function, Job, Ended]


class Executor(Protocol):
    """Runs functions for one thread: in the thread itself, or in a process."""

    def execute(self, function: Function, job: Job) -> JobOutcome: ...

    def stop(self, job: Job) -> None:
        """Called from another thread: end the function that runs for this job, if that can be done."""

    def close(self) -> None: ...


class InThread:
    """Runs functions in the thread itself."""

    def execute(self, function: Function, job: Job) -> JobOutcome:
        """Run a function."""
        return execution.execute(function, job)

    def stop(self, job: Job) -> None:
        """Do nothing: a thread cannot be ended. Its function can look at `job.revoked`."""

    def close(self) -> None:
        """Do nothing: there is no process to end."""


class ThreadPool:
    """Up to `size` threads, each with an executor of its own, started when they are needed."""

    def __init__(self, size: int, executor: Callable[[], Executor]) -> None:
        self._size = size
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[WorkItem | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._executors: set[Executor] = set()
        self.busy = 0  # functions that were passed to `run` and have not ended
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()  # for the loop
        self._wake_up_sent = False  # the loop will make the calls
        self._abandoned = False

    def run(self, function: Function, job: Job, ended: Ended) -> None:
        """Run a function in a thread; `ended` is called on the loop."""
        self.busy += 1
        if self.busy > len(self._threads) and len(self._threads) < self._size:
            # A daemon, so that a program that must stop at once does not wait for a job that does not end.
            name = f"geartrain-worker-{len(self._threads)}"
            thread = threading.Thread(target=self._run_functions, daemon=True, name=name)
            self._threads.append(thread)
            thread.start()
        self._work.put((function, job, ended))

    def stop(self, job: Job) -> None:
        """End the function of a job that was revoked, if it runs in a process."""
        for executor in list(self._executors):
            executor.stop(job)

    def call_on_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        """From a thread: make a call on the loop, in the order of these calls."""
        self._calls.append((call, arguments))
        if not self._wake_up_sent:
            self._wake_up_sent = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._make_calls)

    async def close(self) -> None:
        """End the threads, whose functions have all ended."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._make_calls()

    def abandon(self) -> None:
        """Wait for nothing: functions in processes are killed, functions in threads go on, and are ignored."""
        self._abandoned = True
        for _ in self._threads:
            self._work.put(None)
        for executor in list(self._executors):
            executor.close()

    def _make_calls(self) -> None:
        self._wake_up_sent = False
        while self._calls:
            call, arguments = self._calls.popleft()
            call(*arguments)

    def _function_ended(self, ended: Ended, outcome: JobOutcome) -> None:
        self.busy -= 1
        ended(outcome)

    def _run_functions(self) -> None:
        executor = self._executor()
        self._executors.add(executor)
        try:
            while (item := self._work.get()) is not None and not self._abandoned:
                function, job, ended = item
                outcome = JobOutcome() if job.revoked else executor.execute(function, job)
                self.call_on_loop(self._function_ended, ended, outcome)
        finally:
            self._executors.discard(executor)
            executor.close()
