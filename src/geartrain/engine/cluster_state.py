"""What a cluster asks of the engine: unique keys that hold at all its servers, and a lease that may lapse.

**Keys.** While other servers may have a job with the same unique key, a new job with a key is *reserving*: it is in no
queue until the store has accepted the key. Then it is confirmed, or ceded, if another server has a job with that key:
its submitters get the handle of that one (`KeyWaiter`), and those who wait for its result watch it there. Of a
foreground job the store has the key and nothing else, until it ends.

**Lease.** A server that cannot reach the store may have been taken for dead, and others may have its background jobs.
From `lapse_at` on, functions with background jobs in their queues rest. Those with foreground jobs alone go on.
"""

from typing import NamedTuple

from geartrain.engine import crew
from geartrain.engine.deadlines import NEVER
from geartrain.engine.function import Function
from geartrain.engine.interfaces import Journal, KeyWaiter, Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import BLOCKED, CANCELLED, DEAD, QUEUED, RESERVING, RUNNING, SCHEDULED, enter
from geartrain.engine.policy import Policy
from geartrain.engine.state import EngineState
from geartrain.model import JobState


class RevivedJob(NamedTuple):
    """What a job was before it was retried."""

    state: JobState
    reason: str
    code: int
    attempts: int
    expires_at: float


class ClusterState(EngineState):
    """Reserved keys, and functions that rest."""

    def __init__(
        self,
        policy: Policy | None = None,
        handle_prefix: bytes = b"H:localhost",
        first_id: int = 1,
        journal: Journal | None = None,
    ) -> None:
        super().__init__(policy, handle_prefix, first_id, journal)
        self.reserves_keys = False  # set by the cluster while another server may have a job with the same key
        self.lapse_at = NEVER  # set by the cluster, in the engine's time
        self.lapsed_functions: set[Function] = set()  # that rest because of the lease
        self._key_waiters: dict[int, list[KeyWaiter]] = {}  # by the id of a job that is reserving
        self._revived: dict[int, RevivedJob] = {}  # jobs that are reserving because they were retried, by id

    # Keys

    def wait_for_key(self, job: LiveJob, waiter: KeyWaiter) -> None:
        """Tell `waiter` if a job that is reserving is ceded."""
        self._key_waiters.setdefault(job.id, []).append(waiter)

    def confirm(self, job: LiveJob) -> None:
        """The key of a job is its own: it may run."""
        self.end_key_wait(job.id)
        if job.state is not RESERVING:
            return
        function = self.functions[job.function]
        function.reserving -= 1
        if job.parents_left:
            enter(job, BLOCKED)
            function.blocked += 1
            self.blocked += 1
        elif job.run_at > self.now:
            enter(job, SCHEDULED)
            self._add_scheduled(function, job)
        else:
            enter(job, QUEUED)
            self._enqueue(function, job)

    def end_key_wait(self, id: int) -> None:
        """The key of a job is its own; or the job has ended before that was known."""
        self._revived.pop(id, None)
        for waiter in self._key_waiters.pop(id, ()):
            waiter.key_free()

    def cede(self, job: LiveJob, handle: bytes) -> None:
        """Another server has a job with this unique key, with that handle: it stands for this one.

        A job that runs already, or that clients of this server wait for, goes on as a foreground job.
        """
        for waiter in self._key_waiters.pop(job.id, ()):
            waiter.key_taken(handle)
        self.journal.withdrawn(job)
        revived = self._revived.pop(job.id, None)
        if revived is not None and job.state is RESERVING:
            self._undo_retry(job, revived)
            return
        job.background = False
        if job.state is RUNNING or job.watchers:
            self.confirm(job)
        elif self.jobs.get(job.id) is job:
            self._finish(job, CANCELLED, b"")

    def yield_to(self, job: LiveJob, other: LiveJob) -> list[Watcher]:
        """This server has become the home of the job that has the key of one that is reserving."""
        if job.id not in self._revived:
            watchers = self.withdraw(job, other.handle)
            # A commit that is under way may write it: one of all jobs, because the store went back in time, does.
            self.journal.release_key(job)
            return watchers
        self.cede(job, other.handle)
        return []

    def _reserve(self, function: Function, job: LiveJob) -> None:
        """The first place of a job whose key may be in use elsewhere."""
        job.state = RESERVING
        function.reserving += 1
        if job.background:
            self.journal.reserving(job)
        else:
            self.held_keys.add(job.id)
            self.journal.reserve_key(job)

    def reserve_again(self, job: LiveJob) -> None:
        """Another server has had the key of a job, and cannot be reached: ask the store again."""
        if job.state is not RESERVING or self.jobs.get(job.id) is not job:
            if self.jobs.get(job.id) is None:
                self.end_key_wait(job.id)
            return
        if job.background:
            self.journal.accepted(job)
            self.journal.reserving(job)
        else:
            self.journal.reserve_key(job)

    def is_revived(self, job: LiveJob) -> bool:
        """Whether a job that is reserving was dead, or had failed, before."""
        return job.id in self._revived

    def give_up_key(self, job: LiveJob) -> None:
        """The store cannot be asked for the key of a foreground job: let it run, as if it had the key."""
        self.held_keys.discard(job.id)
        self.confirm(job)

    def withdraw(self, job: LiveJob, handle: bytes) -> list[Watcher]:
        """Another server has a job that stands for this one, with that handle; return the watchers of this one."""
        for waiter in self._key_waiters.pop(job.id, ()):
            waiter.key_taken(handle)
        self.held_keys.discard(job.id)
        self.journal.withdrawn(job)
        watchers = self._remove(self.functions[job.function], job, CANCELLED) or []
        if job.children is not None:
            self._end_parent(job)
        return watchers

    def _undo_retry(self, job: LiveJob, before: RevivedJob) -> None:
        """A job stays dead, or failed, as the store has it."""
        function = self.functions[job.function]
        self._remove(function, job, before.state)
        job.reason, job.code, job.attempts, job.expires_at = before[1:]
        function.restored_or_retried -= 1
        self.restored_or_retried -= 1
        function.retries -= 1
        if before.state is DEAD:
            self.dead[job.id] = job
            self.dead_counts[function.name] = self.dead_counts.get(function.name, 0) + 1

    # Lease

    def renew(self, lapse_at: float) -> None:
        """The store has accepted something from this server, so its jobs are its own until then at least."""
        self.lapse_at = lapse_at
        if self.lapsed and self.now < lapse_at:
            self.lapsed = False
            functions, self.lapsed_functions = self.lapsed_functions, set()
            for function in functions:
                function.lapsed = False
                self.end_rest(function)

    def lapse(self) -> None:
        """The lease is over: assign no background job until it is renewed."""
        if self.lapsed:
            return
        self.lapsed = True
        for function in self.functions.values():
            if any(job.background for job in function.queued_jobs()):
                self._rest(function)

    def end_rest(self, function: Function) -> None:
        """One of the reasons is gone to assign no jobs of a function. Assign them again, if it was the last one."""
        if function.update_rest():
            for queue in function.queues:
                if queue.size and not queue.is_held:
                    crew.announce(queue)
            self._wake_all(function)

    def _rest(self, function: Function) -> None:
        """Assign no jobs of a function until the lease is renewed."""
        function.lapsed = function.resting = True
        self.lapsed_functions.add(function)
