"""The engine: everything that clients, workers and operators can do with jobs.

Doors call its verbs and implement `Watcher` and `Worker`; the server implements `Journal` and calls `tick`. The engine
does no I/O and reads no clock: the caller sets `now`.

>>> engine = Engine()
>>> worker = PollingWorker("example")
>>> engine.register(worker, b"reverse")
>>> handle = engine.submit(b"reverse", payload=b"test", background=True).handle
>>> job = engine.claim(worker)
>>> job.handle == handle, job.payload
(True, b'test')
>>> engine.complete(worker, job, b"tset")
>>> engine.find(handle) is None
True

A job whose worker disconnects goes back to its queue, and keeps the failed attempt:

>>> job = engine.submit(b"reverse", payload=b"test", background=True)
>>> engine.claim(worker) is job
True
>>> engine.remove_worker(worker)
>>> job.state.name, job.attempts, job.failed_attempts[0].reason
('QUEUED', 1, 'worker disconnected')
"""

from geartrain.engine.cluster_state import RevivedJob
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED
from geartrain.engine.policy import JOB_BYTES, FunctionPolicy
from geartrain.engine.worker import Worker
from geartrain.engine.worker_verbs import WorkerVerbs
from geartrain.errors import DuplicateKeyError


class PollingWorker(Worker):
    """A worker that polls for jobs and cannot be woken."""

    __slots__ = ()

    def wake(self) -> None:
        pass


class Engine(WorkerVerbs):
    """One engine per server. This class adds the verbs for operators, and `tick`."""

    def limit(self, name: bytes, high: int, normal: int, low: int) -> None:
        """Limit the number of jobs of a function, by the priority of a new job; 0: no limit."""
        function = self.function(name)
        function.limits = (max(high, 0), max(normal, 0), max(low, 0))
        function.has_limits = any(function.limits)

    def configure(self, name: bytes, policy: FunctionPolicy) -> None:
        """Give a function settings of its own; one without any has those of the engine again."""
        function = self.function(name)
        function.max_run = policy.max_run or 0.0
        self.set_limits(function, policy.limits)
        if policy == FunctionPolicy():
            self.function_policies.pop(function.name, None)
        else:
            self.function_policies[function.name] = policy

    def pause(self, name: bytes) -> None:
        """Assign no jobs of this function until it is resumed."""
        function = self.function(name)
        function.paused = function.resting = True

    def resume(self, name: bytes) -> None:
        """Undo `pause`."""
        function = self.function(name)
        function.paused = False
        self.end_rest(function)

    def drop(self, name: bytes) -> bool:
        """Remove a function that has neither workers nor jobs; return whether it was removed."""
        function = self.functions.get(name)
        if function is None or function.workers or function.total:
            return False
        self.forget(function)
        return True

    def retry(self, job: LiveJob) -> None:
        """Queue a dead job again, as a background job because no client waits for it."""
        self._check_unique(job)
        before = _before_retry(job)
        self._remove_dead(job)
        was_background, job.background = job.background, True
        self._queue_again(job)
        if was_background:
            self.journal.revived(job)
        else:
            self.journal.accepted(job)
        self._announce_retried(job, before)

    def retry_failed(self, job: LiveJob) -> None:
        """Queue a failed background job again that the journal kept whole.

        Raise QueueFullError if the payloads of all jobs would exceed their limit.
        """
        self._check_unique(job)
        self._check_bytes(job.function, self.free_bytes - job.payload_size - JOB_BYTES)
        before = _before_retry(job)
        self._remember_handle(job)
        self._queue_again(job)
        self.journal.retried(job)
        self._announce_retried(job, before)

    def _check_unique(self, job: LiveJob) -> None:
        other = self.unique_jobs.get(job.function, job.unique) if job.unique else None
        if other is not None:
            handle = job.handle.decode("utf-8", "backslashreplace")
            holder = other.handle.decode("utf-8", "backslashreplace")
            raise DuplicateKeyError(f"job {handle} cannot be retried: job {holder} has its unique key")

    def _queue_again(self, job: LiveJob) -> None:
        """Make a job that failed or was dead one of the engine's again, in state queued."""
        self._readmit(job, QUEUED)
        job.after, job.parents_left = b"", 0

    def _announce_retried(self, job: LiveJob, before: RevivedJob) -> None:
        if self.observer is not None:
            self.observer.requeued(job, "retried")
        function = self.functions[job.function]
        if job.unique and self.reserves_keys:
            self._revived[job.id] = before
            self._reserve(function, job)
        else:
            self._enqueue(function, job)

    def reschedule_failed(self, job: LiveJob, run_at: float, reason: str) -> bool:
        """Record a failed attempt of a running job and run it again at `run_at`; return False if no worker has it.

        For workers whose protocol cannot express it: if the worker answers for the job nevertheless, it is ignored.
        """
        if job.owner is None:
            return False
        job.owner.forgive_late(job.handle)
        if job.id in self.borrowed:
            worker = job.owner
            self.end_loan(job).postponed(job, worker, run_at, reason)
            return True
        self._record_retry(job, reason)
        self._reschedule(job, run_at, reason)
        return True

    def mark_dead(self, job: LiveJob, reason: str) -> bool:
        """As `reschedule_failed`, but the job is dead."""
        if job.owner is None:
            return False
        job.owner.forgive_late(job.handle)
        if job.id in self.borrowed:
            worker = job.owner
            self.end_loan(job).gave_up(job, worker, reason)
            return True
        self._record_attempt(job, reason)
        self._mark_dead(job, reason)
        return True

    def delete(self, job: LiveJob) -> None:
        """Remove a dead job."""
        self._delete_dead(job)

    def tick(self, now: float) -> float:
        """Set the time and do what is due; return when to call it next."""
        self.now = now
        self.end_expired(self.policy.moves_per_tick)
        self._enqueue_due()
        self._expire_due()
        self._check_due()
        self._wake_more()
        for timer in self.timers:
            timer.fire(now)
        return self.deadline()


def _before_retry(job: LiveJob) -> RevivedJob:
    return RevivedJob(job.state, job.reason, job.code, job.attempts, job.expires_at)
