"""Threads that run plain functions for a worker, so that its loop stays free.

What they have to say reaches the loop in batches: one wake-up of the loop for all that was said since the last.
"""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from geartrain.client.job import Function, Job, Outcome

Ended = Callable[[Outcome], None]
Task = tuple[Function, Job, Ended]


class Place(Protocol):
    """Where a thread has its functions run: right here, or in a process of its own."""

    def perform(self, function: Function, job: Job) -> Outcome: ...

    def close(self) -> None: ...


class Threads:
    """As many threads as jobs may run at once, started when they are needed."""

    def __init__(self, size: int, place: Callable[[], Place]) -> None:
        self._size = size
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._places: set[Place] = set()
        self.busy = 0  # tasks that were given and have not ended
        self._said: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._told = False  # the loop will come and look
        self._abandoned = False

    def run(self, function: Function, job: Job, ended: Ended) -> None:
        """Have a function run; `ended` is called on the loop."""
        self.busy += 1
        if self.busy > len(self._threads) and len(self._threads) < self._size:
            # A daemon, so that a program that must stop at once is not held up by a job that does not end.
            thread = threading.Thread(target=self._work, daemon=True, name=f"geartrain-worker-{len(self._threads)}")
            self._threads.append(thread)
            thread.start()
        self._tasks.put((function, job, ended))

    def tell(self, call: Callable[..., None], *arguments: Any) -> None:
        """From a thread: have something called on the loop."""
        self._said.append((call, arguments))
        if not self._told:
            self._told = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._hear)

    async def close(self) -> None:
        """Let the threads end; all their tasks have ended."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._hear()

    def abandon(self) -> None:
        """Wait for nothing: what runs elsewhere is killed, what runs in a thread goes on unheard."""
        self._abandoned = True
        for _ in self._threads:
            self._tasks.put(None)
        for place in list(self._places):
            place.close()

    def _hear(self) -> None:
        self._told = False
        while self._said:
            call, arguments = self._said.popleft()
            call(*arguments)

    def _over(self, ended: Ended, outcome: Outcome) -> None:
        self.busy -= 1
        ended(outcome)

    def _work(self) -> None:
        place = self._place()
        self._places.add(place)
        try:
            while (task := self._tasks.get()) is not None and not self._abandoned:
                function, job, ended = task
                outcome = Outcome() if job.revoked else place.perform(function, job)
                self.tell(self._over, ended, outcome)
        finally:
            self._places.discard(place)
            place.close()
