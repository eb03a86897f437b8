"""Locks of a cluster: they hold for the workers of all servers that share a store.

The store knows which jobs hold a lock. Which jobs wait for it, only their own server knows: it looks regularly whether
the lock is free, and also when another server says that it has released it (`retry`).

A change of a lock takes as long as the store does, and the event loop does not wait: changes queue up here, and one
task makes them in their order, as many at a time as there are. So a job may have ended before its request is
answered. Its locks are released then by changes that come later in the queue.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from geartrain.doors.periodic.locks import Lock, Locks
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.model import LockChange, LockUse
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall

_MOST_CHANGES: Final = 500  # at a time
_RETRY_SECONDS: Final = 0.5  # after the store has failed
_POLL_SECONDS: Final = 0.5  # as often as a server looks at the others

_log = logging.getLogger("geartrain.periodic")


class LockStore(Protocol):
    """Where all servers of a cluster keep who holds a lock."""

    async def change(self, changes: Sequence[LockChange]) -> list[bool]:
        """Make these changes in this order, all or none; for each, whether the job got the lock or released it."""

    async def uses(self, names: Sequence[bytes]) -> dict[bytes, LockUse]:
        """The use of those of these locks that a job holds."""


class LockRequest:
    """A request for a lock, until the store has decided."""

    __slots__ = ("answer", "is_over", "is_released", "job", "limit", "longest_wait", "name", "worker")

    def __init__(
        self,
        name: bytes,
        limit: int,
        worker: Worker,
        job: LiveJob,
        longest_wait: float,
        answer: Callable[[bool], object],
    ) -> None:
        self.name = name
        self.limit = limit
        self.worker = worker
        self.job = job
        self.longest_wait = longest_wait
        self.answer = answer
        self.is_over = False  # the worker does not have the job any more
        self.is_released = False  # the worker has released the lock without waiting for the answer


class SharedLocks(Locks):
    """The locks of a door whose server is one of a cluster."""

    def __init__(self, tick_loop: TickLoop, store: LockStore) -> None:
        super().__init__(tick_loop.engine)
        self.on_released: Callable[[bytes], object] = bool  # called with the name, for other servers' jobs that wait
        self._tick_loop = tick_loop
        self._store = store
        self._changes: list[tuple[LockChange, Callable[[bool], None]]] = []  # and what is called when one is made
        self._requests: dict[LiveJob, list[LockRequest]] = {}  # that are not decided
        self._names: set[bytes] = set()  # of locks that may be free now
        self._task: asyncio.Task[None] | None = None
        self._poll_call: DelayedCall | None = None
        self._is_failing = False
        self._is_closed = False

    def request(self, request: LockRequest) -> None:
        """Answer whether the job has the lock; if not, it was taken from its worker and waits."""
        name, job = request.name, request.job
        lock = self._lock(request)
        if job in lock.holders:
            request.answer(True)
            return
        self._requests.setdefault(job, []).append(request)
        change = LockChange(name, job.id, lock.limit)
        self._change(change, lambda is_granted: self._decide(request, is_granted))

    def release(self, name: bytes, job: LiveJob) -> None:
        """Give a lock back. The next job runs when the store has it."""
        for request in self._requests.get(job, ()):
            if request.name == name:
                request.is_released = True
                self._release_later(name, job)
        if self._remove_holder(name, job) is not None:
            self._release_later(name, job)

    def release_all(self, job: LiveJob) -> None:
        """Give all locks of a job back, also those that it has asked for."""
        for request in self._requests.pop(job, ()):
            request.is_over = True
            self._release_later(request.name, job)
        super().release_all(job)

    def retry(self, name: bytes) -> None:
        """The lock may be free: let the next job run if it is."""
        lock = self._locks.get(name)
        if lock is not None and lock.waiting:
            self._names.add(name)
            self._work_later()

    def close(self) -> None:
        """Change nothing any more. The locks of a server that leaves its cluster are free."""
        self._is_closed = True
        if self._poll_call is not None:
            self._poll_call.cancel()
        if self._task is not None:
            self._task.cancel()

    # Decisions of the store

    def _lock(self, request: LockRequest) -> Lock:
        lock = self._locks.setdefault(request.name, Lock())
        lock.limit = max(lock.limit, request.limit)
        return lock

    def _decide(self, request: LockRequest, is_granted: bool) -> None:
        job, name = request.job, request.name
        lock = self._lock(request)
        if request.is_over:
            self._forget_unused(name, lock)
            request.answer(True)  # as for every job that is not the worker's
            return
        requests = self._requests[job]
        requests.remove(request)
        if not requests:
            del self._requests[job]
        if not is_granted:
            self._wait(lock, request.worker, job, request.longest_wait)
            self._poll_later()
        elif not request.is_released:
            self._add_holder(lock, name, job)
        self._forget_unused(name, lock)
        request.answer(is_granted)

    def _release_later(self, name: bytes, job: LiveJob) -> None:
        self._change(LockChange(name, job.id, 0), lambda _: self._released(name))

    def _released(self, name: bytes) -> None:
        lock = self._locks.get(name)
        if lock is not None:
            self._wake_next(lock)
            self._forget_unused(name, lock)
        self.on_released(name)

    # Jobs that wait

    def _poll_later(self) -> None:
        if self._poll_call is None and not self._is_closed:
            self._poll_call = self._tick_loop.timers.call_later(_POLL_SECONDS, self._poll)

    def _poll(self) -> None:
        self._poll_call = None
        for name, lock in list(self._locks.items()):
            for job, until in list(lock.waiting.items()):
                if not self._waits(job, until):
                    del lock.waiting[job]
            self._forget_unused(name, lock)
            self.retry(name)
        if self._names:
            self._poll_later()

    def _wake(self, name: bytes, use: LockUse) -> None:
        """Let as many jobs run as the lock has room for. Others may be quicker, and then they wait again."""
        lock = self._locks.get(name)
        if lock is None:
            return
        for _ in range(max(lock.limit, use.limit) - use.holders):
            self._wake_next(lock)
        self._forget_unused(name, lock)

    # Calls of the store

    def _change(self, change: LockChange, done: Callable[[bool], None]) -> None:
        self._changes.append((change, done))
        self._work_later()

    def _work_later(self) -> None:
        if self._task is None and not self._is_closed:
            self._task = self._tick_loop.loop.create_task(self._work())

    async def _work(self) -> None:
        while self._changes or self._names:
            try:
                if self._changes:
                    await self._change_some()
                else:
                    await self._look()
                self._is_failing = False
            except Exception as error:  # whatever it is, workers wait for an answer
                if not self._is_failing:
                    self._is_failing = True
                    _log.warning("changing locks failed, trying again", extra={"fields": {"why": str(error)}})
                await asyncio.sleep(_RETRY_SECONDS)
        self._task = None

    async def _change_some(self) -> None:
        changes = self._changes[:_MOST_CHANGES]
        outcomes = await self._store.change([change for change, _ in changes])
        del self._changes[: len(changes)]  # not before: after an error they are made again
        self._tick_loop.begin_tick()
        for (_, done), is_granted in zip(changes, outcomes, strict=True):
            try:
                done(is_granted)
            except Exception:  # the others wait as well
                _log.exception("answering a lock request failed")

    async def _look(self) -> None:
        names, self._names = self._names, set()
        uses = await self._store.uses(sorted(names))
        self._tick_loop.begin_tick()
        for name in sorted(names):
            self._wake(name, uses.get(name, LockUse(0, 0)))
