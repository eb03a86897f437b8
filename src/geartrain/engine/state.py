"""What the engine keeps, and the moves that keep it consistent.

Every job that is not over is in `jobs` by its id and in exactly one place besides, which its state names:

- scheduled: `schedule`, counted in its function's `scheduled`;
- queued: the lane of its function and priority;
- running: its owner's `running` or `broadcasts`, counted in its function's `running`; and `leases`, if it has
  a deadline;
- dead: `dead`, and no longer `jobs`.

The moves below change a job's state and its place together, and call out (to watchers, workers) only when
everything is consistent again, since whoever is called may come straight back with another verb.
"""

from collections import OrderedDict, deque
from typing import Final

from geartrain.engine import crew as crews
from geartrain.engine import interfaces
from geartrain.engine.broadcast import Broadcasts
from geartrain.engine.counters import DurationHistogram, OutcomeCounts
from geartrain.engine.crew import Crew
from geartrain.engine.deadlines import Leases, ScheduledJobs
from geartrain.engine.function import Function
from geartrain.engine.interfaces import Journal, Observer, Timer, Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable
from geartrain.engine.lifecycle import CANCELLED, DEAD, QUEUED, RUNNING, SCHEDULED, enter
from geartrain.engine.policy import Policy
from geartrain.engine.worker import BuiltinWorker, Worker
from geartrain.model import Attempt, JobState, id_from_handle

# Codes of failures that no worker has given one.
GENERAL_FAILURE: Final = 1
GIVEN_UP: Final = 255
# After so many jobs an empty engine gives memory back.
_TIDY_AFTER: Final = 10_000
ATTEMPTS_KEPT: Final = 20  # of a job; what comes to nothing more often does so for the same reasons
LONGEST_REASON: Final = 1000  # characters


class EngineState:
    """Jobs, functions, crews and times. The engine's verbs are built from its moves."""

    def __init__(
        self,
        policy: Policy | None = None,
        handle_prefix: bytes = b"H:localhost",
        first_id: int = 1,
        journal: Journal | None = None,
    ) -> None:
        self.policy = policy or Policy()
        self.journal = journal or Journal()
        self.handle_prefix = handle_prefix + b":"
        self.next_id = first_id
        self.now = 0.0  # the time of the current tick; whoever calls a verb sets it first
        self.jobs = JobTable()
        self.dead: dict[int, LiveJob] = {}  # by id
        self.dead_counts: dict[bytes, int] = {}  # how many, by function: it may have been dropped meanwhile
        self.functions: dict[bytes, Function] = {}
        self.crews: dict[frozenset[bytes], Crew] = {}
        self.schedule = ScheduledJobs()
        self.leases = Leases()
        self.broadcasts = Broadcasts()
        self.workers: dict[int, Worker] = {}  # by number: those who offer something, or did and have not left
        self.next_worker = 1
        self.running = 0  # how many jobs run, over all functions
        self.scheduled = 0  # how many wait for their time
        self.restored = 0  # how many were kept from before
        self.returned = 0  # how many came back: kept from before, or dead and retried
        self.outcomes = OutcomeCounts()
        self.wait_times = DurationHistogram()  # from ready to run until a worker has it, for every attempt
        self.run_times = DurationHistogram()  # from then until the job is over
        self.observer: Observer | None = None  # who hears of every job
        self.timers: list[Timer] = []  # whom to call at a time, besides jobs
        self.builtin_workers: dict[
            bytes, BuiltinWorker
        ] = {}  # who moves in with a function that only the server itself offers
        self._observers: list[Observer] = []
        self._tidied_at = first_id  # the next id when the memory of many jobs was last given back
        self._wake_again: deque[tuple[float, Function]] = deque()
        self._dead_foreground: OrderedDict[int, None] = OrderedDict()  # ids, the oldest first
        self.odd_handles: dict[bytes, int] = {}  # ids of those from before whose handles do not end in them

    # Jobs from before

    def restore(self, job: LiveJob) -> None:
        """Take over a background job that was kept from before; those that wait in the order of `run_at`."""
        function = self.function(job.function)
        job.function = function.name
        self.restored += 1
        if id_from_handle(job.handle) != job.id:
            self.odd_handles[job.handle] = job.id
        if job.state is DEAD:
            self.dead[job.id] = job
            self.dead_counts[function.name] = self.dead_counts.get(function.name, 0) + 1
            return
        self.jobs.add(job)
        self.returned += 1
        function.returned += 1
        if job.unique in function.unique_jobs:
            job.unique = b""  # a file that was repaired or edited may have the key twice; both jobs shall run
        if job.unique:
            function.unique_jobs[job.unique] = job
        if job.run_at > self.now:
            job.state = SCHEDULED
            self._add_scheduled(function, job)
        else:
            self._enqueue(function, job)

    @property
    def submitted(self) -> int:
        """How many jobs came since the start. It follows from the others, so that submitting need not count."""
        return self.outcomes.total + len(self.jobs) - self.returned

    @property
    def queued(self) -> int:
        """How many jobs wait for a worker, over all functions."""
        return len(self.jobs) - self.running - self.scheduled

    # Who hears of everything

    def subscribe(self, listener: Observer) -> None:
        """From now on `listener` hears of every job."""
        self._observers = [*self._observers, listener]
        self.observer = interfaces.combined(self._observers)

    def unsubscribe(self, listener: Observer) -> None:
        """It hears no more."""
        self._observers = [other for other in self._observers if other is not listener]
        self.observer = interfaces.combined(self._observers)

    # Functions and crews

    def function(self, name: bytes) -> Function:
        """The function of that name, made if it is new."""
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = Function(name)
            if name in self.builtin_workers:
                self.builtin_workers[name].activate()
        return function

    def worker_count(self, name: bytes) -> int:
        """How many offer a function. The server itself may, also while the function does not exist."""
        function = self.functions.get(name)
        count = function.workers if function is not None else 0
        return max(count, 1) if name in self.builtin_workers else count

    def _join_crew(self, worker: Worker) -> Crew:
        """Put a worker into the crew that offers what it offers."""
        key = frozenset(worker.abilities)
        crew = self.crews.get(key)
        if crew is None:
            crew = self.crews[key] = Crew(key, [self.functions[name] for name in worker.abilities])
        crew.size += 1
        worker.crew = crew
        return crew

    def _leave_crew(self, worker: Worker) -> None:
        """Take a worker out of its crew; a crew without workers is forgotten."""
        crew = worker.crew
        if crew is None:
            return
        worker.crew = None
        if worker.idle:
            crew.remove_idle(worker)
        crew.size -= 1
        if not crew.size:
            del self.crews[crew.key]
            crew.end()

    # Waking workers

    def _wake(self, function: Function, count: int) -> None:
        """Wake up to `count` workers; if jobs are left after that, look again after a while."""
        for _ in range(count):
            worker = crews.next_idle(function)
            if worker is None:
                break
            worker.wake()
            if not function.wake_again_at and function.queued:
                function.wake_again_at = self.now + self.policy.wake_grace
                self._wake_again.append((function.wake_again_at, function))

    def _wake_for_leftovers(self) -> None:
        """Workers were woken some time ago; where jobs are still queued, wake one more for each.

        A moment further away than the grace is from before the clock was moved, or the policy changed.
        """
        latest = self.now + self.policy.wake_grace
        while self._wake_again and not self.now < self._wake_again[0][0] <= latest:
            _, function = self._wake_again.popleft()
            function.wake_again_at = 0.0
            if not function.paused:
                self._wake(function, function.queued)

    # Moving jobs

    def _enqueue(self, function: Function, job: LiveJob, taken_from: Worker | None = None) -> None:
        """Put a job that is in state queued into its lane, and wake somebody for it.

        A worker that it was taken from hears so before anybody is woken: that may be the same worker.
        """
        queue = function.queues[job.priority]
        queue.put(job)
        if queue.size == 1 and not function.paused:
            crews.announce(queue)
        if taken_from is not None:
            taken_from.revoked(job)
        if not function.paused:
            self._wake(function, self.policy.wake_count)

    def _add_scheduled(self, function: Function, job: LiveJob) -> None:
        """Put a job that is in state scheduled on the schedule."""
        function.scheduled += 1
        self.scheduled += 1
        self.schedule.add(job.run_at, job)

    def _move_due(self) -> None:
        """Queue the jobs whose time has come."""
        for _ in range(self.policy.moves_per_tick):
            job = self.schedule.due(self.now)
            if job is None:
                return
            function = self.functions[job.function]
            enter(job, QUEUED)
            function.scheduled -= 1
            self.scheduled -= 1
            self._enqueue(function, job)

    def _release(self, function: Function, job: LiveJob) -> None:
        """Take a job from whoever runs it. Its state is no longer running."""
        owner = job.owner
        if owner is not None:
            owner.running.drop(job)
            job.owner = None
        else:
            self.broadcasts.end(job)
        function.running -= 1
        self.running -= 1
        job.progress = None
        if job.deadline:
            job.deadline = 0.0
            self.leases.leave()

    def _detach(self, function: Function, job: LiveJob, state: JobState) -> list[Watcher] | None:
        """Take a job out of everything because it enters a state from which it does not run on by itself."""
        before = job.state
        enter(job, state)
        if before is RUNNING:
            self.run_times.add(self.now - job.started_at)
            self._release(function, job)
        elif before is QUEUED:
            function.queues[job.priority].leave(job)
        elif before is SCHEDULED:
            function.scheduled -= 1
            self.scheduled -= 1
            self.schedule.leave()
        self.jobs.drop(job)
        if job.unique:
            del function.unique_jobs[job.unique]
        if not len(self.jobs) and self.next_id - self._tidied_at > _TIDY_AFTER:
            self._tidy(function)
        watchers = job.watchers
        if watchers:
            job.watchers = None
            for watcher in watchers:
                watcher.watching.discard(job)
        return watchers

    def _tidy(self, function: Function) -> None:
        """All of very many jobs are over. A dictionary keeps its size when it is drained, unless it is told."""
        self._tidied_at = self.next_id
        self.jobs.clear()
        if not function.unique_jobs:
            function.unique_jobs.clear()
        self.journal.drained()

    def _holders(self, job: LiveJob) -> list[Worker]:
        """Who runs a job: its owner, or all who have a copy of it."""
        if job.owner is not None:
            return [job.owner]
        return [worker for worker in self.broadcasts.copies.get(job, ()) if job.handle in worker.running]

    def _finish(
        self, job: LiveJob, state: JobState, result: bytes, worker: Worker | None = None
    ) -> list[Watcher] | None:
        """End a job; returns who has to be told. `worker` is needed only where the job has no owner."""
        worker = job.owner or worker
        function = self.functions[job.function]
        function.outcomes.count(state)
        self.outcomes.count(state)
        watchers = self._detach(function, job, state)
        if job.background:
            self.journal.finished(job, result, worker)
        if self.observer is not None:
            self.observer.finished(job, result)
        return watchers

    def _fail(self, job: LiveJob, state: JobState, reason: str, worker: Worker | None = None) -> None:
        """End a job that has no result, and tell its watchers."""
        job.reason = reason
        job.code = job.code or GENERAL_FAILURE
        watchers = self._finish(job, state, b"", worker)
        if watchers:
            for watcher in watchers:
                watcher.fail(job, reason)

    def _requeue(self, job: LiveJob, why: str, taken_from: Worker | None = None) -> None:
        """Put a running job back at the end of its lane."""
        function = self.functions[job.function]
        enter(job, QUEUED)
        self._release(function, job)
        job.run_at = self.now
        if job.background:
            self.journal.changed(job)
        if self.observer is not None:
            self.observer.requeued(job, why)
        self._enqueue(function, job, taken_from)

    def _mark_dead(self, job: LiveJob, reason: str) -> None:
        """Set a job aside as dead, where people can see it."""
        job.reason = reason
        job.code = GIVEN_UP
        function = self.functions[job.function]
        function.outcomes.count(DEAD)
        self.outcomes.count(DEAD)
        watchers = self._detach(function, job, DEAD)
        self.dead[job.id] = job
        self.dead_counts[function.name] = self.dead_counts.get(function.name, 0) + 1
        if job.background:
            self.journal.changed(job)
        else:
            self._dead_foreground[job.id] = None
            while len(self._dead_foreground) > max(self.policy.dead_foreground_limit, 0):
                self._revive(self.dead[next(iter(self._dead_foreground))])
        if self.observer is not None:
            self.observer.finished(job, b"")
        if watchers:
            for watcher in watchers:
                watcher.fail(job, reason)

    def _note_attempt(self, job: LiveJob, why: str) -> None:
        """The attempt that is just ending does not end the job."""
        worker = job.owner
        door, name = (worker.door, worker.name) if worker is not None else ("", b"")
        failed_attempts = job.failed_attempts[1 - ATTEMPTS_KEPT :] if job.failed_attempts is not None else []
        failed_attempts.append(Attempt(job.started_at, self.now, door, name, why[:LONGEST_REASON]))
        job.failed_attempts = failed_attempts

    def _revive(self, job: LiveJob) -> None:
        """Take a job from among the dead."""
        del self.dead[job.id]
        self._dead_foreground.pop(job.id, None)
        left = self.dead_counts[job.function] - 1
        if left:
            self.dead_counts[job.function] = left
        else:
            del self.dead_counts[job.function]

    def _erase(self, job: LiveJob) -> None:
        """End a dead job for good."""
        self._revive(job)
        enter(job, CANCELLED)
        if job.background:
            self.journal.finished(job, b"", None)

    # Time

    def deadline(self) -> float:
        """When `tick` has something to do next; NEVER while nothing waits for a time."""
        soonest = self.schedule.next()
        leases = self.leases.next()
        if leases < soonest:
            soonest = leases
        if self._wake_again:
            at, latest = self._wake_again[0][0], self.now + self.policy.wake_grace
            if latest < at:
                at = latest
            if at < soonest:
                soonest = at
        for timer in self.timers:
            if timer.at < soonest:
                soonest = timer.at
        return soonest
