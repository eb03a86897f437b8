"""Jobs that run at another server than their home.

The *home* of a job lends it to a server that has an idle worker for it. There, in the *borrower's* engine, it is a
foreground job with the same id and handle, and its watcher is its `Loan`. What its worker reports goes to the loan:
progress and the end as to every watcher, and through further methods what only the home may decide, such as whether a
job runs again whose worker is gone.

At home, a worker that `is_distant` stands for some workers of the borrower, and has the job. The verbs for it are here,
too. A job is not lent on: whoever borrows it runs it or returns it.
"""

from geartrain.engine.crew import Crew, ReadyQueue
from geartrain.engine.interfaces import Loan
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import CANCELLED, QUEUED, RUNNING, enter
from geartrain.engine.policy import JOB_BYTES
from geartrain.engine.worker import Worker
from geartrain.engine.workflow_verbs import WorkflowVerbs


class LoanVerbs(WorkflowVerbs):
    """Verbs for the jobs of other servers, and for those that other servers run."""

    # At the borrower

    def borrow(self, job: LiveJob, loan: Loan) -> bool:
        """Queue a job of another server; return False if this server has it already."""
        if self.jobs.get(job.id) is not None:
            return False
        function = self.kept_function(job.function)
        job.function = function.name
        self.free_bytes -= job.payload_size + JOB_BYTES
        self._remember_handle(job)
        self.borrowed[job.id] = loan
        self.jobs.add(job)
        self.restored_or_retried += 1
        function.restored_or_retried += 1
        job.watchers = [loan]
        loan.watching.add(job)
        self._enqueue(function, job)
        return True

    def has_idle_worker(self, name: bytes) -> bool:
        """Whether a worker of this server that offers a function may be idle."""
        function = self.functions.get(name)
        return function is not None and not function.idle_crews.is_empty

    def has_own_worker(self, name: bytes) -> bool:
        """Whether a worker of this server, idle or busy, offers a function."""
        function = self.functions.get(name)
        return function is not None and function.workers > function.distant_workers

    def end_loan(self, job: LiveJob) -> Loan:
        """Forget a borrowed job that has not ended; return its loan, for the caller to inform."""
        function = self.functions[job.function]
        if job.state is QUEUED or job.state is RUNNING:
            self._remove(function, job, CANCELLED)
        loan = self.borrowed.pop(job.id)
        self.restored_or_retried -= 1
        function.restored_or_retried -= 1
        self._ids_by_handle.pop(job.handle, None)
        return loan

    def loan_ended(self, job: LiveJob) -> None:
        """A borrowed job has ended, as its loan was told: it counts at its home, and not here."""
        state = job.state
        self.end_loan(job)
        self.functions[job.function].outcomes.uncount(state)
        self.outcomes.uncount(state)

    def return_loan(self, job: LiveJob) -> None:
        """No worker was free for a borrowed job: forget it. Jobs behind it may be lent now."""
        function = self.functions[job.function]
        self.end_loan(job)
        if function.queued and not function.resting:
            self._wake(function, 1)

    def own(self, stored: LiveJob) -> bool:
        """This server has become the home of a job; return whether it has borrowed that job, which goes on here."""
        loan = self.borrowed.get(stored.id)
        job = self.jobs.get(stored.id)
        if loan is None or job is None:
            return False
        del self.borrowed[job.id]
        loan.watching.discard(job)
        job.watchers = [watcher for watcher in job.watchers or () if watcher is not loan] or None
        job.background = True
        for name in _STORED:
            setattr(job, name, getattr(stored, name))
        if job.unique and self.unique_jobs.get(job.function, job.unique) is not None:
            job.unique = b""
        elif job.unique:
            self.unique_jobs.add(job)
        if job.user:
            self.count_job(job)
        if job.expires_at:
            self.expiring.add(job.expires_at, job)
        self.restored += 1
        return True

    # At home

    def claim_to_lend(self, worker: Worker) -> LiveJob | None:
        """As `claim`, for a worker that stands for another server. If there is no job that may be lent, it is idle."""
        crew = worker.crew
        if crew is None:
            crew = self._join_crew(worker)
        if worker.idle:
            crew.remove_idle(worker)
        ready = self._lendable(crew)
        if not worker.inbox and ready is None:
            crew.add_idle(worker)
            return None
        if worker.inbox or ready is None or not self.borrowed:
            job = self.claim(worker)
        else:
            job = self.claim_from(worker, ready.function.name, ready.priority)
        if job is not None and job.deadline:  # the borrower has an eye on the time
            job.deadline = 0.0
            self.leases.count_stale()
        return job

    def claim(self, worker: Worker) -> LiveJob | None:
        """See `WorkerVerbs`."""
        raise NotImplementedError

    def claim_from(self, worker: Worker, name: bytes, priority: int) -> LiveJob | None:
        """See `WorkerVerbs`."""
        raise NotImplementedError

    def _lendable(self, crew: Crew) -> ReadyQueue | None:
        """The queue of the next job for a crew that is this server's own."""
        if not self.borrowed:
            return crew.first_ready()
        for ready in crew.ready:
            for entry in ready:
                first = entry.queue.first() if entry.queue.size and not entry.function.resting else None
                if first is not None and first.id not in self.borrowed:
                    return entry
        return None

    def take_back(self, worker: Worker, job: LiveJob) -> None:
        """A job that was lent and never started returns to its place in the queue; the attempt does not count."""
        if job.owner is not worker:
            self.lose(worker, job, "worker returned the job")
            return
        job.attempts -= 1
        if self._is_abandoned(job):
            self._finish(job, CANCELLED, b"")
            return
        function = self.functions[job.function]
        enter(job, QUEUED)
        self._unassign(function, job)
        self._wait_again(job)
        self._enqueue(function, job)

    def lose(self, worker: Worker, job: LiveJob, reason: str) -> None:
        """The worker will not answer for a job that it has."""
        self._lose_jobs(worker, [job], reason)

    def _lose_jobs(self, worker: Worker, jobs: list[LiveJob], reason: str) -> None:
        raise NotImplementedError

    def entrust(self, worker: Worker, job: LiveJob, is_counted: bool) -> None:
        """A server that could not be reached still runs a job, which is in its queue again: let it go on there.

        `is_counted`: this attempt was counted when the server was lost.
        """
        function = self.functions[job.function]
        enter(job, RUNNING)
        function.queues[job.priority].remove(job)
        self._entrust(function, job, worker)
        if is_counted:
            job.attempts -= 1

    def _is_abandoned(self, job: LiveJob) -> bool:
        """Whether no client waits for a foreground job any more."""
        return not job.background and not job.watchers


# What a borrowed job has of its home's job only when this server becomes its home.
_STORED = (
    "after", "count", "door", "expires_at", "failed_attempts", "keep_for", "keeps_result", "submitted_at", "unique",
    "user",
)  # fmt: skip
