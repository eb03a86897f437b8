"""The engine: everything that clients (`desk.py`), workers (`floor.py`) and operators can do with jobs.

Doors call its verbs and implement `Watcher` and `Worker`; the server implements `Journal` and calls `tick`.
Nothing here does I/O or reads a clock: `now` is set by whoever calls.

>>> engine = Engine()
>>> worker = SilentWorker("example")
>>> engine.register(worker, b"reverse")
>>> handle = engine.submit(b"reverse", payload=b"test", background=True).handle
>>> job = engine.claim(worker)
>>> job.handle == handle, job.payload
(True, b'test')
>>> engine.complete(worker, job, b"tset")
>>> engine.find(handle) is None
True
"""

from geartrain.engine import crew
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED, enter
from geartrain.engine.worker import Worker
from geartrain.engine.worker_verbs import WorkerVerbs
from geartrain.errors import DuplicateKeyError


class SilentWorker(Worker):
    """A worker that is never told of work and asks by itself."""

    __slots__ = ()

    def wake(self) -> None:
        """It asks by itself."""


class Engine(WorkerVerbs):
    """One engine per server; every door works on it. Here are the operators' verbs, and time."""

    def limit(self, function: bytes, high: int, normal: int, low: int) -> None:
        """How many jobs a function may have when one of the given priority wants in; 0 means any number."""
        home = self.function(function)
        home.limits = (max(high, 0), max(normal, 0), max(low, 0))
        home.limited = any(home.limits)

    def pause(self, function: bytes) -> None:
        """Hand out no jobs of this function until it is resumed."""
        self.function(function).paused = True

    def resume(self, function: bytes) -> None:
        """Hand out jobs of this function again."""
        home = self.function(function)
        home.paused = False
        for queue in home.queues:
            if queue.size:
                crew.announce(queue)
        self._wake(home, home.queued)

    def drop(self, function: bytes) -> bool:
        """Forget a function that has neither workers nor jobs; whether it was forgotten."""
        home = self.functions.get(function)
        if home is None or home.workers or home.total:
            return False
        del self.functions[function]
        return True

    def retry(self, job: LiveJob) -> None:
        """Give a dead job another life, as a background job since nobody waits for it."""
        home = self.function(job.function)
        if job.unique and job.unique in home.unique_jobs:
            raise DuplicateKeyError(f"job {job.handle!r} cannot be retried: its unique key is in use again")
        self._revive(job)
        enter(job, QUEUED)
        job.reason, job.code = "", 0
        job.attempts = 0
        job.run_at = self.now
        self.jobs.add(job)
        self.returned += 1
        home.returned += 1
        if job.unique:
            home.unique_jobs[job.unique] = job
        if job.background:
            self.journal.changed(job)
        else:
            job.background = True
            self.journal.accepted(job)
        if self.observer is not None:
            self.observer.requeued(job, "retried")
        self._enqueue(home, job)

    def reschedule_failed(self, job: LiveJob, run_at: float, reason: str) -> bool:
        """The worker that runs a job wants it to be tried again at a time; whether there is one that runs it.

        For a worker whose protocol has no word for it: it will not answer for the job, and is excused if it does.
        """
        if job.owner is None:
            return False
        job.owner.forgive_late(job.handle)
        self._note_attempt(job, reason)
        self._reschedule(job, run_at, reason)
        return True

    def mark_dead(self, job: LiveJob, reason: str) -> bool:
        """The same, but it has given the job up: set it aside as dead."""
        if job.owner is None:
            return False
        job.owner.forgive_late(job.handle)
        self._note_attempt(job, reason)
        self._mark_dead(job, reason)
        return True

    def delete(self, job: LiveJob) -> None:
        """Forget a dead job."""
        self._erase(job)

    def tick(self, now: float) -> float:
        """Do what is due, and say when to come back."""
        self.now = now
        self._move_due()
        self._expire_due()
        self._wake_for_leftovers()
        for timer in self.timers:
            timer.fire(now)
        return self.deadline()
