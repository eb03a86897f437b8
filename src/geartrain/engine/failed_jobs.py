"""Jobs that failed or expired, and jobs that the engine gave up.

What becomes of a background job that failed is a setting, `FailureAction`. By default the journal keeps it whole, so
that an operator can retry it, and the engine has nothing of it any more. A dead job stays in the engine.
"""

from typing import Final

from geartrain.engine.cluster_state import ClusterState
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import CANCELLED, DEAD, EXPIRED, FAILED, enter
from geartrain.engine.policy import JOB_BYTES
from geartrain.engine.worker import Worker
from geartrain.model import Attempt, FailureAction, JobState

# Failure codes of jobs whose worker gave none.
GENERAL_FAILURE: Final = 1
GIVEN_UP: Final = 255
ATTEMPTS_KEPT: Final = 20  # failed attempts per job; the latest ones
LONGEST_REASON: Final = 1000  # characters
_CUT: Final = " …"  # at the end of a reason that was longer


def cut_reason(reason: str) -> str:
    """The reason as it is kept: what is too long ends with a mark.

    >>> cut_reason("x" * 1000) == "x" * 1000, cut_reason("x" * 1001) == "x" * 998 + " …"
    (True, True)
    """
    if len(reason) <= LONGEST_REASON:
        return reason
    return reason[: LONGEST_REASON - len(_CUT)] + _CUT


class FailedJobs(ClusterState):
    """The moves of jobs that fail, expire or die."""

    def _fail(self, job: LiveJob, state: JobState, reason: str, worker: Worker | None = None) -> None:
        """End a job without a result, and inform its watchers."""
        job.reason = reason
        job.code = job.code or GENERAL_FAILURE
        watchers = self._finish_failed(job, b"", worker) if state is FAILED else self._finish(job, state, b"", worker)
        if watchers:
            for watcher in watchers:
                watcher.fail(job, reason)

    def _finish_failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> list[Watcher] | None:
        """End a job that failed, a background job as the settings say; return its watchers, for the caller."""
        if not job.background:
            return self._finish(job, FAILED, result, worker)
        action = self._failure_action(job.function)
        if action is FailureAction.DEAD:
            self._record_attempt(job, job.reason, worker)
            return self._add_dead(job, job.reason)
        return self._finish(job, FAILED, result, worker, action is FailureAction.KEEP)

    def give_up_payload(self, job: LiveJob, reason: str) -> None:
        """End a job that waits and cannot run, because its payload is nowhere."""
        self._fail(job, CANCELLED, reason)

    def _failure_action(self, function: bytes) -> FailureAction:
        policy = self.function_policies.get(function)
        if policy is None or policy.failures is None:
            return self.policy.failures
        return policy.failures

    def end_expired(self, most: int) -> int:
        """End up to so many jobs that no worker got in time, and return how many there were."""
        for number in range(most):
            job = self.expiring.pop_due(self.now)
            if job is None:
                return number
            job.expires_at = 0.0  # its entry is gone
            waited = max(self.now - job.submitted_at, 0.0)
            self._fail(job, EXPIRED, f"expired: no worker was free for it within {waited:.1f} s")
        return most

    def _mark_dead(self, job: LiveJob, reason: str) -> None:
        """Give up on a running job and keep it among the dead, where operators see it."""
        watchers = self._add_dead(job, reason)
        if watchers:
            for watcher in watchers:
                watcher.fail(job, reason)

    def _add_dead(self, job: LiveJob, reason: str) -> list[Watcher] | None:
        """The same, without informing its watchers, which are returned."""
        job.reason = reason
        job.code = GIVEN_UP
        function = self.functions[job.function]
        function.outcomes.count(DEAD)
        self.outcomes.count(DEAD)
        watchers = self._remove(function, job, DEAD)
        self.dead[job.id] = job
        self.dead_counts[function.name] = self.dead_counts.get(function.name, 0) + 1
        if job.background:
            self.journal.changed(job)
        else:
            self._dead_foreground[job.id] = None
            while len(self._dead_foreground) > max(self.policy.dead_foreground_limit, 0):
                forgotten = self.dead[next(iter(self._dead_foreground))]
                self._remove_dead(forgotten)
                if forgotten.children is not None:
                    self._end_parent(forgotten)
        if self.observer is not None:
            self.observer.finished(job, b"")
        return watchers

    def _record_retry(self, job: LiveJob, reason: str) -> None:
        """The current attempt of a running job failed, and the caller lets it run again."""
        self._record_attempt(job, reason)
        self.functions[job.function].retries += 1

    def _record_attempt(self, job: LiveJob, reason: str, worker: Worker | None = None) -> None:
        """Add the current attempt of a running job to its failed attempts. `worker` is only used for a broadcast."""
        worker = job.owner or worker
        door, name = (worker.door, worker.name) if worker is not None else ("", b"")
        attempts = job.failed_attempts[1 - ATTEMPTS_KEPT :] if job.failed_attempts is not None else []
        attempts.append(Attempt(job.started_at, self.now, door, name, cut_reason(reason)))
        job.failed_attempts = attempts

    def _readmit(self, job: LiveJob, state: JobState) -> None:
        """Make a job one of the engine's again that has ended badly or was dead; the caller gives it its place."""
        function = self.kept_function(job.function)
        job.function = function.name
        self.free_bytes -= job.payload_size + JOB_BYTES
        if job.is_cold:
            self.payloads.add(job)
        if job.user:
            self.count_job(job)
        enter(job, state)
        job.reason, job.code = "", 0
        job.expires_at = 0.0  # whoever retries it wants it to run
        job.attempts = 0
        job.run_at = self.now
        self.jobs.add(job)
        self.restored_or_retried += 1
        function.restored_or_retried += 1
        function.retries += 1
        if job.unique:
            self.unique_jobs.add(job)

    def _remove_dead(self, job: LiveJob) -> None:
        """Remove a job from the dead."""
        del self.dead[job.id]
        self.free_bytes += job.payload_size + JOB_BYTES
        if job.is_cold:
            self.payloads.remove(job)
        if job.user:
            self.uncount_job(job)
        self._dead_foreground.pop(job.id, None)
        count = self.dead_counts[job.function] - 1
        if count:
            self.dead_counts[job.function] = count
        else:
            del self.dead_counts[job.function]

    def _delete_dead(self, job: LiveJob) -> None:
        """Remove a job from the dead, and from the store."""
        self._remove_dead(job)
        enter(job, CANCELLED)
        if job.background:
            self.journal.finished(job, b"", None)
        if job.children is not None:
            self._end_parent(job)
