"""Locks: how many jobs may run under a name at once.

A worker asks for a lock on behalf of its job. If too many jobs hold it, the job is taken from the worker and waits.
When a holder ends or gives the lock back, the job that has waited longest runs again and asks again. A waiting job also
runs again after `lock-timeout`, so that a lock that is never released blocks nothing for ever.

A job waits for a lock as long as it is scheduled for the time at which it would run again. If it ran and was
rescheduled since, its entry here is stale and is skipped.
"""

from collections import Counter

from mypy_extensions import mypyc_attr

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import SCHEDULED
from geartrain.engine.worker import Worker


class Lock:
    """One name, the jobs that hold it and the jobs that wait for it."""

    __slots__ = ("holders", "limit", "waiting")

    def __init__(self) -> None:
        self.limit = 1  # with 0 its jobs would wait for ever
        self.holders: set[LiveJob] = set()
        self.waiting: dict[LiveJob, float] = {}  # when each runs again; the one that waits longest is first


@mypyc_attr(allow_interpreted_subclasses=True)
class Locks:
    """All locks of a door."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._locks: dict[bytes, Lock] = {}
        self._held: dict[LiveJob, set[bytes]] = {}  # the locks of each job

    def acquire(self, name: bytes, limit: int, worker: Worker, job: LiveJob, longest_wait: float) -> bool:
        """Whether the job has the lock now; if not, it was taken from its worker and waits."""
        lock = self._locks.setdefault(name, Lock())
        lock.limit = max(lock.limit, limit)
        if job in lock.holders:
            return True
        if len(lock.holders) < lock.limit:
            self._add_holder(lock, name, job)
            return True
        self._wait(lock, worker, job, longest_wait)
        return False

    def release(self, name: bytes, job: LiveJob) -> None:
        """Give a lock back, and let the next job run."""
        lock = self._remove_holder(name, job)
        if lock is not None:
            self._wake_next(lock)
            self._forget_unused(name, lock)

    def release_all(self, job: LiveJob) -> None:
        """Give all locks of a job back."""
        if self._held:
            for name in list(self._held.get(job, ())):
                self.release(name, job)

    def waiting(self) -> Counter[bytes]:
        """The number of jobs of each function that wait for a lock."""
        return Counter(
            job.function
            for lock in self._locks.values()
            for job, until in lock.waiting.items()
            if self._waits(job, until)
        )

    def _add_holder(self, lock: Lock, name: bytes, job: LiveJob) -> None:
        lock.holders.add(job)
        self._held.setdefault(job, set()).add(name)

    def _remove_holder(self, name: bytes, job: LiveJob) -> Lock | None:
        """The lock, if the job held it."""
        lock = self._locks.get(name)
        if lock is None or job not in lock.holders:
            return None
        lock.holders.discard(job)
        held = self._held.get(job)
        if held is not None:
            held.discard(name)
            if not held:
                del self._held[job]
        return lock

    def _wait(self, lock: Lock, worker: Worker, job: LiveJob, longest_wait: float) -> None:
        """Take the job from its worker until the lock is free."""
        until = self._engine.now + longest_wait
        lock.waiting.pop(job, None)
        lock.waiting[job] = until
        self.release_all(job)
        self._engine.reschedule(worker, job, until, reset_attempts=False)

    def _forget_unused(self, name: bytes, lock: Lock) -> None:
        if not lock.holders and not lock.waiting:
            self._locks.pop(name, None)

    def _wake_next(self, lock: Lock) -> None:
        while lock.waiting:
            job = next(iter(lock.waiting))
            if self._waits(job, lock.waiting.pop(job)):
                self._engine.run_now(job)
                return

    def _waits(self, job: LiveJob, until: float) -> bool:
        """Whether the job still waits: it may have been cancelled or replaced, or have run."""
        return job.state is SCHEDULED and job.run_at == until and self._engine.find(job.handle) is job
