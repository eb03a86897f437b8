"""The engine's state, and the moves that keep it consistent.

Every job that is not finished is in `jobs`, and in one more place that depends on its state:

- scheduled: in `schedule`, counted in its function's `scheduled`;
- queued: in the queue of its function and priority;
- running: in its owner's `running` or in `broadcasts`, counted in its function's `running`; and in `leases`, if it has
  a deadline;
- reserving: counted in its function's `reserving` (`cluster_state.py`);
- blocked: counted in its function's `blocked` (`blocked_jobs.py`);
- dead: in `dead`, and not in `jobs`.

A job in `jobs` that has a unique key is in `unique_jobs` too, and one that has a time to live in `expiring`.

A move changes the state and the place of a job together. It calls out to watchers and workers only when the state is
consistent again, because they may call another verb at once.
"""

from collections import OrderedDict, deque
from typing import Final

from mypy_extensions import i64

from geartrain.engine import crew as crews
from geartrain.engine import interfaces
from geartrain.engine.broadcast import Broadcasts
from geartrain.engine.counters import DurationHistogram, OutcomeCounts
from geartrain.engine.deadlines import NEVER, ExpiringJobs, Leases, ScheduledJobs
from geartrain.engine.flow import FlowControl
from geartrain.engine.function import Function
from geartrain.engine.interfaces import Journal, Loan, Observer, Timer, Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable
from geartrain.engine.lifecycle import BLOCKED, DEAD, DONE, QUEUED, RESERVING, RUNNING, SCHEDULED, enter
from geartrain.engine.payload_memory import PayloadMemory
from geartrain.engine.policy import JOB_BYTES, Policy
from geartrain.engine.unique_index import UniqueIndex
from geartrain.engine.worker import Worker
from geartrain.model import JobState, id_from_handle

# An engine that becomes empty releases memory if it has had this many jobs at once. If it has had as many one after the
# other, it does so once in a while: returning memory takes milliseconds, in which nobody is answered.
_RELEASE_MEMORY_AFTER: Final = 10_000
_RELEASE_MEMORY_EVERY: Final = 60.0  # seconds


class EngineState(FlowControl):
    """Jobs and their deadlines; the base of the engine's verbs."""

    def __init__(
        self,
        policy: Policy | None = None,
        handle_prefix: bytes = b"H:localhost",
        first_id: int = 1,
        journal: Journal | None = None,
    ) -> None:
        super().__init__(policy or Policy())
        self.journal = journal or Journal()
        self.handle_prefix = handle_prefix + b":"
        self._handle_thousands: i64 = -1  # the id of the last job without its last three digits
        self._handle_stem = b""  # what the handles of these thousand jobs begin with
        self.next_id = first_id
        self.jobs = JobTable()
        self.payloads = PayloadMemory(self)
        self.unique_jobs = UniqueIndex()
        # While several watchers get the same event: what one of them has encoded for the others, by kind and handle.
        self.shared_packets: dict[tuple[int, bytes], bytes] | None = None
        self.dead: dict[int, LiveJob] = {}  # by id
        self.schedule = ScheduledJobs()
        self.leases = Leases()
        self.expiring = ExpiringJobs()
        self.broadcasts = Broadcasts()
        self.workers: dict[int, Worker] = {}  # by number; those that are listed
        self.next_worker = 1
        self.running: i64 = 0  # running jobs of all functions
        self.scheduled: i64 = 0  # scheduled jobs of all functions
        self.blocked: i64 = 0  # jobs of all functions that wait for other jobs
        self.free_bytes: i64 = self.policy.max_queued_bytes  # left for jobs; restored ones may make it negative
        self.is_stopping = False  # nothing more is stored, so no job is accepted any more
        self.restored = 0  # jobs that a restart brought back
        self.restored_or_retried = 0  # jobs that were not submitted: restored, or dead and retried
        self.outcomes = OutcomeCounts()
        self.wait_times = DurationHistogram()  # from ready to run until assigned, for every attempt
        self.run_times = DurationHistogram()  # from the last assignment until the end
        self.lapsed = False  # the lease of this server is over: background jobs are not assigned
        self.borrowed: dict[int, Loan] = {}  # by id: jobs of other servers, see `loans.py`
        self.held_keys: set[int] = set()  # foreground jobs whose unique keys the store has, or will have
        self.unsettled: dict[int, LiveJob] = {}  # by id: restored jobs that wait for jobs which may not be restored yet
        self.is_joining = False  # the members of a workflow are being submitted
        self._ended_parents: deque[LiveJob] = deque()  # whose children do not know it yet
        self._is_following = False  # their children are being told
        # While there are borrowed jobs: who ended the foreground job that ended last.
        self.ended_by: Worker | None = None
        self.observer: Observer | None = None  # receives the events of every job
        self.timers: list[Timer] = []
        self._observers: list[Observer] = []
        self._memory_released_at = 0.0
        self._memory_released_id = first_id  # the next id at that time
        self._dead_foreground: OrderedDict[int, None] = OrderedDict()  # ids, the oldest first
        self._ids_by_handle: dict[bytes, int] = {}  # of restored jobs whose handle does not end in their id

    # Restart

    def restore(self, job: LiveJob, holder: Worker | None = None) -> None:
        """Add a background job from the store. Call it in the order of `run_at`.

        `holder` has it already: it stands for a server that runs the job, whose home was another one.
        """
        function = self.kept_function(job.function)
        job.function = function.name
        self.restored += 1
        self._remember_handle(job)
        self.free_bytes -= job.payload_size + JOB_BYTES
        if job.is_cold:
            self.payloads.add(job)
        if job.user:
            self.count_job(job)
        if job.state is DEAD:
            self.dead[job.id] = job
            self.dead_counts[function.name] = self.dead_counts.get(function.name, 0) + 1
            self.payloads.committed([job])
            return
        other = self.unique_jobs.get(function.name, job.unique) if job.unique else None
        if other is not None and other.state is RESERVING:
            # While it waited for the store, this server became the home of the other one.
            watchers = self.yield_to(other, job)
            if watchers:
                job.watchers = watchers
                for watcher in watchers:
                    watcher.watching.add(job)
            other = self.unique_jobs.get(function.name, job.unique)
        if other is not None:
            job.unique = b""  # a file that was repaired or edited may have a key twice; both jobs must run
        self.jobs.add(job)
        self.restored_or_retried += 1
        function.restored_or_retried += 1
        if job.unique:
            self.unique_jobs.add(job)
        if job.expires_at:
            self.expiring.add(job.expires_at, job)
        if holder is None and len(job.after) > 0:
            self._restore_blocked(function, job)
        elif holder is None:
            self._schedule_or_enqueue(function, job)
        else:
            job.state = RUNNING
            self._entrust(function, job, holder)

    def _entrust(self, function: Function, job: LiveJob, holder: Worker) -> None:
        """A worker has had a job, which is in no queue, from before this server knew of it."""
        job.owner = holder
        job.attempts += 1
        job.started_at = self.now
        holder.running.add(job)
        function.running += 1
        self.running += 1
        if function.flow is not None:
            partitions = function.partitions
            partition = partitions.get(job.partition) if partitions is not None and partitions.is_limited else None
            self.count_start(function, function.flow, partition)

    def yield_to(self, job: LiveJob, other: LiveJob) -> list[Watcher]:
        """Another job with this unique key stands for one that is reserving; return the watchers of that one."""
        raise NotImplementedError

    def _restore_blocked(self, function: Function, job: LiveJob) -> None:
        """The place of a job that waits for others until all jobs are restored."""
        raise NotImplementedError

    def _end_parent(self, parent: LiveJob) -> None:
        """A job has ended: tell those that wait for it."""
        raise NotImplementedError

    def _is_kept_for_retry(self, job: LiveJob) -> bool:
        """Whether a job that other jobs wait for, and that has ended badly, is kept whole; make its record last."""
        raise NotImplementedError

    def give_up_payload(self, job: LiveJob, reason: str) -> None:
        """End a job that waits and cannot run, because its payload is nowhere."""
        raise NotImplementedError

    def _remember_handle(self, job: LiveJob) -> None:
        """Find a job that this server did not submit by its handle, although that may not end in its id."""
        if id_from_handle(job.handle) != job.id:
            self._ids_by_handle[job.handle] = job.id

    @property
    def submitted(self) -> int:
        """How many jobs were submitted since the start. Computed from other counters, so that submitting is cheaper."""
        return self.outcomes.total + len(self.jobs) - self.restored_or_retried

    @property
    def queued_bytes(self) -> int:
        """The bytes of all jobs, dead ones included: their payloads in memory, and JOB_BYTES for each."""
        return self.policy.max_queued_bytes - self.free_bytes

    @property
    def queued(self) -> int:
        """How many jobs of all functions wait for a worker."""
        return len(self.jobs) - self.running - self.scheduled - self.blocked

    # Observers

    def subscribe(self, observer: Observer) -> None:
        """Send the events of all jobs to `observer`."""
        self._observers = [*self._observers, observer]
        self.observer = interfaces.combine(self._observers)

    def unsubscribe(self, observer: Observer) -> None:
        """Undo `subscribe`."""
        self._observers = [other for other in self._observers if other is not observer]
        self.observer = interfaces.combine(self._observers)

    # Moving jobs

    def _schedule_or_enqueue(self, function: Function, job: LiveJob) -> None:
        """Give a new job its first place."""
        if job.run_at > self.now:
            job.state = SCHEDULED
            self._add_scheduled(function, job)
        else:
            self._enqueue(function, job)

    def _enqueue(self, function: Function, job: LiveJob, taken_from: Worker | None = None) -> None:
        """Put a job in state queued into its queue, and wake a worker for it.

        The worker that it was `taken_from` is informed first, because it may be the one that is woken.
        """
        if self.lapsed and job.background:
            self._rest(function)
        if len(job.partition) > 0 and function.partitions is None:
            self._divide(function)
        queue = function.queues[job.priority]
        queue.put(job)
        if job.is_cold:
            self.payloads.enqueue(function, queue)
        if (queue.size == 1 or queue.partitions is not None) and not function.resting and not queue.is_held:
            crews.announce(queue)
        if taken_from is not None:
            taken_from.revoked(job)
        if function.resting or queue.is_held:
            return
        if function.cold and function.waiting_queue(job.priority) is not None:
            return
        if not (function.idle_crews.is_empty and function.distant_crews.is_empty):
            self._wake(function, self.policy.wake_count)

    def _rest(self, function: Function) -> None:
        """Assign no jobs of a function until the lease is renewed."""
        raise NotImplementedError

    def _add_scheduled(self, function: Function, job: LiveJob) -> None:
        """Put a job in state scheduled into the schedule."""
        function.scheduled += 1
        self.scheduled += 1
        self.schedule.add(job.run_at, job)

    def _enqueue_due(self) -> None:
        """Queue the scheduled jobs whose time has come."""
        for _ in range(self.policy.moves_per_tick):
            job = self.schedule.pop_due(self.now)
            if job is None:
                return
            function = self.functions[job.function]
            enter(job, QUEUED)
            function.scheduled -= 1
            self.scheduled -= 1
            self._enqueue(function, job)

    def _unassign(self, function: Function, job: LiveJob) -> None:
        """Take a job from its workers. Its state is no longer running."""
        owner = job.owner
        if owner is not None:
            owner.running.remove(job)
            job.owner = None
        else:
            self.broadcasts.end(job)
        function.running -= 1
        self.running -= 1
        if function.flow is not None:
            self.count_end(function, function.flow, job)
        if job.deadline:
            job.deadline = 0.0
            self.leases.count_stale()

    def _remove(self, function: Function, job: LiveJob, state: JobState) -> list[Watcher] | None:
        """Move a job to a final state or to DEAD: remove it from its place and from `jobs`. Return its watchers."""
        before = job.state
        enter(job, state)
        if before is RUNNING:
            seconds = self.now - job.started_at
            self.run_times.add(seconds)
            times = function.times
            if times is not None:
                times.run.add(seconds)
            self._unassign(function, job)
        elif before is QUEUED:
            function.queues[job.priority].remove(job)
            if function.flow is not None:
                self.check_removed(function, function.flow, job)
        elif before is SCHEDULED:
            function.scheduled -= 1
            self.scheduled -= 1
            self.schedule.count_stale()
        elif before is RESERVING:
            function.reserving -= 1
        elif before is BLOCKED:
            function.blocked -= 1
            self.blocked -= 1
        self.jobs.remove(job)
        if job.is_cold:
            self.payloads.remove(job)
            if before is QUEUED:
                self.payloads.leave(job)
        if job.rare is not None and job.expires_at:
            self.expiring.count_stale()
        if state is not DEAD:
            self.free_bytes += job.payload_size + JOB_BYTES
            if len(job.user) > 0:
                self.uncount_job(job)
        else:
            job.progress = None  # other jobs keep it for their record
        if len(job.unique) > 0 and not (self.borrowed and job.id in self.borrowed):
            self.unique_jobs.remove(job)
            if self.held_keys and job.id in self.held_keys:
                self.held_keys.discard(job.id)
                if not job.background:
                    self.journal.release_key(job)
        if not len(self.jobs) and self.next_id - self._memory_released_id > _RELEASE_MEMORY_AFTER:
            self._release_memory()
        watchers = job.watchers
        if watchers:
            job.watchers = None
            for watcher in watchers:
                watcher.watching.discard(job)
        return watchers

    def _release_memory(self) -> None:
        """Shrink the tables, if it is time: an emptied dictionary keeps the size that it had with many jobs."""
        many = self.jobs.most > _RELEASE_MEMORY_AFTER
        if not many and 0.0 <= self.now - self._memory_released_at < _RELEASE_MEMORY_EVERY:
            return
        self._memory_released_at = self.now
        self._memory_released_id = self.next_id
        self.jobs.shrink()
        self.unique_jobs.shrink()
        self.journal.drained()

    def _running_jobs(self, function: Function) -> list[LiveJob]:
        """All jobs of a function that run. Those of workers that no list shows are rare, and looked for everywhere."""
        owned = [job for worker in self.workers.values() for job in worker.running.jobs() if job.owner is worker]
        running = [job for job in (*owned, *self.broadcasts.copies) if job.function == function.name]
        if len(running) != function.running:
            running = [job for job in self.jobs.values() if job.state is RUNNING and job.function == function.name]
        return running

    def _workers_of(self, job: LiveJob) -> list[Worker]:
        """The workers that run a job: its owner, or all that have claimed a copy of it."""
        if job.owner is not None:
            return [job.owner]
        return [worker for worker in self.broadcasts.copies.get(job, ()) if job.handle in worker.running]

    def _finish(
        self, job: LiveJob, state: JobState, result: bytes, worker: Worker | None = None, whole: bool = False
    ) -> list[Watcher] | None:
        """End a job and return its watchers, for the caller to inform. `worker` is only used for a broadcast.

        With `whole`, a background job is kept with its payload.
        """
        owner = job.owner
        if owner is not None:
            worker = owner
        function = self.functions[job.function]
        function.outcomes.count(state)
        self.outcomes.count(state)
        watchers = self._remove(function, job, state)
        if job.background:
            if job.children is not None and state is not DONE:
                whole = self._is_kept_for_retry(job) or whole
            if whole:
                self.journal.failed(job, result, worker)
            else:
                self.journal.finished(job, result, worker)
        elif self.borrowed:
            self.ended_by = worker
        if self.observer is not None:
            self.observer.finished(job, result)
        if job.children is not None:
            self._end_parent(job)
        return watchers

    def _requeue(self, job: LiveJob, reason: str, taken_from: Worker | None = None) -> None:
        """Put a running job back at the end of its queue."""
        function = self.functions[job.function]
        enter(job, QUEUED)
        self._unassign(function, job)
        job.progress = None
        job.run_at = self.now
        if job.background:
            self.journal.changed(job)
        if self.observer is not None:
            self.observer.requeued(job, reason)
        self._wait_again(job)
        self._enqueue(function, job, taken_from)

    def _wait_again(self, job: LiveJob) -> None:
        """A running job waits again. If its time came meanwhile, its entry is gone; it expires now."""
        if job.expires_at:
            self.expiring.count_stale()
            self.expiring.add(job.expires_at, job)

    # Time

    def deadline(self) -> float:
        """Return when `tick` has something to do next, or NEVER."""
        soonest = NEVER
        if self.schedule.not_before < soonest:
            soonest = self.schedule.next_time()
        if self.leases.not_before < soonest:
            soonest = min(soonest, self.leases.next_time())
        if self.expiring.not_before < soonest:
            soonest = min(soonest, self.expiring.next_time())
        if self.has_planned_wakes:
            soonest = min(soonest, self.next_wake())
        if self.is_awaiting:
            soonest = min(soonest, self.next_check())
        for timer in self.timers:
            if timer.at < soonest:
                soonest = timer.at
        return soonest
