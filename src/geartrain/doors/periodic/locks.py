"""Locks: how many jobs may run under a name at once.

A worker that has a job asks for the lock. If too many have it, the job is taken back and waits; when one of the
holders is done with its job, or gives the lock back, the job that has waited longest runs again and asks again.
A waiting job also comes back by itself after a while, so that nothing is lost with a lock that is never released.

A job waits for a lock as long as it is scheduled for the time until which it was put off. One that has come back
by itself, and has been put off since by its worker, is no longer meant.
"""

from collections import Counter

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import SCHEDULED
from geartrain.engine.worker import Worker


class Lock:
    """One name: who holds it, and who waits."""

    __slots__ = ("holders", "limit", "waiting")

    def __init__(self) -> None:
        self.limit = 1  # a lock that nobody may hold would keep its jobs for ever
        self.holders: set[LiveJob] = set()
        self.waiting: dict[LiveJob, float] = {}  # until when each was put off, the longest waiting first


class Locks:
    """All locks of a door."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._locks: dict[bytes, Lock] = {}
        self._held: dict[LiveJob, set[bytes]] = {}  # what each job holds

    def acquire(self, name: bytes, limit: int, worker: Worker, job: LiveJob, patience: float) -> bool:
        """Whether the job has the lock now; if not, it was taken from its worker and waits."""
        lock = self._locks.setdefault(name, Lock())
        lock.limit = max(lock.limit, limit)
        if job in lock.holders:
            return True
        if len(lock.holders) < lock.limit:
            lock.holders.add(job)
            self._held.setdefault(job, set()).add(name)
            return True
        until = self._engine.now + patience
        lock.waiting.pop(job, None)
        lock.waiting[job] = until
        self.release_all(job)
        self._engine.reschedule(worker, job, until, reset_attempts=False)
        return False

    def release(self, name: bytes, job: LiveJob) -> None:
        """The job gives the lock back; the next one may try."""
        lock = self._locks.get(name)
        if lock is None or job not in lock.holders:
            return
        lock.holders.discard(job)
        held = self._held.get(job)
        if held is not None:
            held.discard(name)
            if not held:
                del self._held[job]
        self._wake_next(lock)
        if not lock.holders and not lock.waiting:
            del self._locks[name]

    def release_all(self, job: LiveJob) -> None:
        """The job is over, put off, or lost."""
        for name in list(self._held.get(job, ())):
            self.release(name, job)

    def waiting(self) -> Counter[bytes]:
        """How many jobs of each function wait for a lock."""
        return Counter(
            job.function
            for lock in self._locks.values()
            for job, until in lock.waiting.items()
            if self._waits(job, until)
        )

    def _wake_next(self, lock: Lock) -> None:
        while lock.waiting:
            job = next(iter(lock.waiting))
            if self._waits(job, lock.waiting.pop(job)):
                self._engine.run_now(job)
                return

    def _waits(self, job: LiveJob, until: float) -> bool:
        """Whether it still does: it may have been cancelled, replaced, or come back by itself."""
        return job.state is SCHEDULED and job.run_at == until and self._engine.find(job.handle) is job
