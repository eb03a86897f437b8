"""What workers do: offer functions, claim jobs, report on them, leave."""

import math

from geartrain.engine import crew as crews
from geartrain.engine.crew import Crew
from geartrain.engine.failed_jobs import LONGEST_REASON, cut_reason
from geartrain.engine.function import Function
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.lifecycle import CANCELLED, DONE, FAILED, QUEUED, RUNNING, SCHEDULED, enter
from geartrain.engine.loans import LoanVerbs
from geartrain.engine.queue import JobQueue
from geartrain.engine.worker import Ability, Worker
from geartrain.errors import LimitError
from geartrain.model import Expiry
from geartrain.rights import WORK


class WorkerVerbs(LoanVerbs):
    """The engine's verbs for workers.

    Verbs that report on a job require that the worker has it (see `worker.running`); doors refuse other reports.
    """

    def register(
        self,
        worker: Worker,
        name: bytes,
        timeout: float = 0.0,
        on_timeout: Expiry = Expiry.FAIL,
        broadcast: bool = False,
    ) -> None:
        """The worker offers the function `name`. If it did before, its timeout changes.

        Raise RequestError if the name is invalid, or the function or the ability would be one too many.
        """
        if name in self.builtin_workers and worker is not self.builtin_workers[name]:
            return  # a client must not answer for the server
        known = name in worker.abilities
        if not known:
            self.check_ability(worker, name)
        function = self.function(name)
        function.broadcast = broadcast
        worker.abilities[function.name] = Ability(timeout, on_timeout)
        if not known:
            function.workers += 1
            self._list_worker(worker)
            self._change_crew(worker, function)

    def check_ability(self, worker: Worker, name: bytes) -> None:
        """Raise RequestError if the worker could not `register` for one more function of that name."""
        self.require(WORK, name)
        most = self.policy.max_abilities
        if len(worker.abilities) >= most and name not in worker.abilities:
            raise LimitError(f"the worker offers {most} functions; max_abilities allows no more")
        self.check_function(name)

    def unregister(self, worker: Worker, name: bytes) -> None:
        """The worker no longer offers the function; its jobs of that function are requeued."""
        if worker.abilities.pop(name, None) is None:
            return
        function = self.functions[name]
        function.workers -= 1
        self._change_crew(worker, function)
        jobs = [job for job in self._assigned_jobs(worker) if job.function == name]
        if worker.inbox:
            worker.inbox = [job for job in worker.inbox if job.function != name]
        self._lose_jobs(worker, jobs, "worker stopped offering the function")

    def remove_worker(self, worker: Worker) -> None:
        """The worker disconnected, or no longer offers any function; its jobs are requeued."""
        self._leave_crew(worker)
        for name in worker.abilities:
            self.functions[name].workers -= 1
        worker.abilities.clear()
        self.workers.pop(worker.number, None)
        jobs = self._assigned_jobs(worker)
        worker.inbox = None
        self._lose_jobs(worker, jobs, worker.leaving_reason)

    def claim(self, worker: Worker) -> LiveJob | None:
        """Assign the next job to the worker and return it, or return None. The worker is no longer idle."""
        crew = worker.crew
        if crew is None:
            crew = self._join_crew(worker)
        if worker.idle:
            self.stop_sleeping(worker)
        if worker.inbox:
            copy = self.broadcasts.claim(worker)
            if copy is not None:
                return copy
        ready = crew.next_ready()
        return None if ready is None else self._assign(crew, worker, ready.function, ready.queue)

    def claim_from(self, worker: Worker, name: bytes, priority: int) -> LiveJob | None:
        """As `claim`, but only from one queue, and only if the worker offers the function."""
        function = self.functions.get(name)
        if function is None or function.resting:
            return None
        queue = function.queues[priority]
        if not queue.size or queue.is_held or function.name not in worker.abilities:
            return None
        if queue.cold and queue.is_waiting():
            return None
        crew = worker.crew
        if crew is None:
            crew = self._join_crew(worker)
        if worker.idle:
            self.stop_sleeping(worker)
        return self._assign(crew, worker, function, queue)

    def claim_scheduled(self, worker: Worker, job: LiveJob) -> LiveJob | None:
        """As `claim`, but a scheduled job, before its time, and only if the worker offers its function."""
        function = self.functions[job.function]
        if job.state is not SCHEDULED or function.resting or function.name not in worker.abilities:
            return None
        partitions = function.partitions
        if job.is_cold:
            self.payloads.read_job(job)
            return None
        if (self.lapsed and job.background) or (partitions is not None and partitions.holds(job.partition)):
            return None
        enter(job, QUEUED)
        function.scheduled -= 1
        self.scheduled -= 1
        self.schedule.count_stale()
        queue = function.queues[job.priority]
        first = queue.first() if partitions is None else partitions.first_of(queue, job.partition)
        job.run_at = self.now if first is None else min(self.now, math.nextafter(first.run_at, -math.inf))
        queue.put(job)
        if partitions is not None:
            partitions.give_turn(queue, job.partition)
        return self.claim_from(worker, job.function, job.priority)

    def _assign(self, crew: Crew, worker: Worker, function: Function, queue: JobQueue) -> LiveJob | None:
        """Assign the first job of a queue to the worker."""
        job = queue.take()
        if queue.cold:
            self.payloads.taken_from(queue)
        now = self.now
        crew.last_claim_at = now
        enter(job, RUNNING)
        job.owner = worker
        job.attempts += 1
        job.started_at = now
        worker.running.add(job)
        function.running += 1
        self.running += 1
        if function.flow is not None:
            partitions = function.partitions
            self.count_start(function, function.flow, None if partitions is None else partitions.taken_from)
        ready_at = job.run_at
        if ready_at < job.submitted_at:  # a time in the past only determines the position in the queue
            ready_at = job.submitted_at
        times = function.times
        if times is None:
            times = self.measure(function)
        self.wait_times.add(now - ready_at)
        times.wait.add(now - ready_at)
        timeout = worker.abilities[job.function].timeout
        if job.timeout and (not timeout or job.timeout < timeout):
            timeout = job.timeout
        if function.max_run and (not timeout or function.max_run < timeout):
            timeout = function.max_run
        if timeout:
            job.deadline = now + timeout
            self.leases.add(job.deadline, job)
        if self.observer is not None:
            self.observer.started(job)
        if function.broadcast:
            self._broadcast(function, job, worker)
            if job.handle not in worker.running:  # a worker that was woken has completed it already
                return None
        return job

    def sleep(self, worker: Worker, lingers: bool = False) -> None:
        """The worker becomes idle; it is woken at once if there are jobs for it.

        One that `lingers` is served before those of its crew that do not: it has asked, and waits for the answer.
        """
        if worker.idle:
            return
        crew = worker.crew
        if crew is None:
            crew = self._join_crew(worker)
        if worker.inbox or crew.has_work():
            worker.wake()
            return
        crew.add_idle(worker, lingers)

    def stop_sleeping(self, worker: Worker) -> None:
        """The worker is no longer idle."""
        if worker.idle and worker.crew is not None:
            worker.crew.remove_idle(worker)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """The worker reports progress."""
        job.progress = progress
        if self.observer is not None:
            self.observer.progress(job, progress)
        for watcher in job.watchers or ():
            watcher.progress(job, progress)

    def data(self, job: LiveJob, data: bytes) -> None:
        """The worker sends a part of the result."""
        watchers = job.watchers
        if watchers:
            if len(watchers) > 1:
                self._send_data_to_all(watchers, job, data)
            else:
                watchers[0].data(job, data)

    def _send_data_to_all(self, watchers: list[Watcher], job: LiveJob, data: bytes) -> None:
        self.shared_packets = {}
        try:
            for watcher in watchers:
                watcher.data(job, data)
        finally:
            self.shared_packets = None

    def warning(self, job: LiveJob, data: bytes) -> None:
        """The worker sends a warning."""
        for watcher in job.watchers or ():
            watcher.warning(job, data)

    def complete(self, worker: Worker, job: LiveJob, result: bytes) -> None:
        """The worker has completed the job."""
        if job.owner is not worker:
            worker.running.remove(job)
        watchers = self._finish(job, DONE, result, worker)
        if watchers:
            if len(watchers) > 1:
                self._complete_all(watchers, job, result)
            else:
                watchers[0].complete(job, result)

    def _complete_all(self, watchers: list[Watcher], job: LiveJob, result: bytes) -> None:
        """Inform several watchers, which share what they encode."""
        self.shared_packets = {}
        try:
            for watcher in watchers:
                watcher.complete(job, result)
        finally:
            self.shared_packets = None

    def fail(self, worker: Worker, job: LiveJob, reason: str = "worker reported failure", retry: bool = False) -> None:
        """The job failed; with `retry`, it runs again after a delay until it has had the maximum of attempts."""
        if job.owner is not worker and not self.broadcasts.drop(job, worker):
            return
        if not retry or job.owner is not worker:
            self._fail(job, FAILED, reason, worker)
        elif self.borrowed and job.id in self.borrowed:
            self.end_loan(job).failed(job, worker, reason)
        elif self._attempts_exhausted(job) and not self._is_abandoned(job):
            self._give_up(job, reason)
        else:
            self._record_retry(job, reason)
            self._reschedule(job, self.now + self.policy.delay_after(job.attempts), reason)

    def raise_exception(self, worker: Worker, job: LiveJob, data: bytes, code: int = 1) -> None:
        """The job failed, and the worker sends data about it; `code` is its failure code."""
        if job.owner is not worker and not self.broadcasts.drop(job, worker):
            return
        # A character has four bytes at most.
        job.reason = cut_reason(data[: 4 * LONGEST_REASON + 1].decode("utf-8", "replace"))
        job.code = code
        watchers = self._finish_failed(job, data, worker)
        if watchers:
            for watcher in watchers:
                watcher.exception(job, data)

    def lease(self, job: LiveJob, seconds: float) -> None:
        """Give a running job a deadline, unless it has one: it is requeued if it is not finished by then."""
        if job.state is RUNNING and not job.deadline:
            job.deadline = self.now + seconds
            self.leases.add(job.deadline, job)

    def hand_back(self, worker: Worker, job: LiveJob) -> None:
        """The worker returns the job; the attempt does not count."""
        if job.owner is not worker:
            self._lose_jobs(worker, [job], "worker returned the job")
            return
        if self.borrowed and job.id in self.borrowed:
            self.end_loan(job).handed_back(job)
            return
        job.attempts -= 1
        if self._is_abandoned(job):
            self._finish(job, CANCELLED, b"")
        else:
            self._requeue(job, "worker returned the job")

    def reschedule(
        self, worker: Worker, job: LiveJob, run_at: float, step: int = 0, reset_attempts: bool = True
    ) -> None:
        """The worker wants the job to run again at `run_at`; `step` is added to its count.

        The attempts start again from 0, or with `reset_attempts=False` this attempt does not count.
        """
        if job.owner is not worker:
            self.fail(worker, job)
            return
        if self.borrowed and job.id in self.borrowed:
            self.end_loan(job).rescheduled(job, worker, run_at, step, reset_attempts)
            return
        job.attempts = 0 if reset_attempts else job.attempts - 1
        job.count += step
        self._reschedule(job, run_at, "rescheduled by its worker")

    def _list_worker(self, worker: Worker) -> None:
        """List a worker that offers a function until it is removed."""
        if not worker.number:
            worker.number = self.next_worker
            self.next_worker += 1
            worker.since = self.now
        if worker.number > 0:
            self.workers[worker.number] = worker

    def _change_crew(self, worker: Worker, function: Function) -> None:
        """The worker has begun or ceased to offer a function; if it was idle, it becomes idle in its changed crew."""
        crew = worker.crew
        if crew is None:
            return
        idle = worker.idle
        if idle:
            crew.remove_idle(worker)
        if not self._own_crew(worker):
            if function.name in worker.abilities:
                crew.add(function)
            else:
                crew.remove(function)
        if idle:
            self.sleep(worker)

    def _broadcast(self, function: Function, job: LiveJob, first: Worker) -> None:
        """Give copies of a job that `first` claimed to all idle workers of its function."""
        job.owner = None
        others: list[Worker] = []
        for idle_crews in (function.idle_crews, function.distant_crews):
            while (other := crews.pop_idle_worker(idle_crews)) is not None:
                others.append(other)
        self.broadcasts.share(job, first, others)
        for other in others:
            other.wake()

    def _attempts_exhausted(self, job: LiveJob) -> bool:
        limit = self.policy.max_attempts
        return limit > 0 and job.attempts >= limit

    def _assigned_jobs(self, worker: Worker) -> list[LiveJob]:
        """The jobs that a worker runs, and the broadcast copies that it has yet to claim."""
        return [*worker.running.jobs(), *(worker.inbox or ())]

    def _lose_jobs(self, worker: Worker, jobs: list[LiveJob], reason: str) -> None:
        """The worker will not answer for these jobs. Losing one may end others, because watchers are called."""
        for job in jobs:
            if job.owner is worker:
                self._lose_job(worker, job, reason)
            elif worker in self.broadcasts.copies.get(job, ()) and self.broadcasts.drop(job, worker):
                self._fail(job, FAILED, "no worker of the broadcast is left")

    def _lose_job(self, worker: Worker, job: LiveJob, reason: str, revoked: bool = False) -> None:
        """Take a job from its owner, which will not answer for it; with `revoked`, inform the owner."""
        if self.borrowed and job.id in self.borrowed:
            self.end_loan(job).lost(job, worker, reason)
        elif self._is_abandoned(job):
            self._finish(job, CANCELLED, b"")
        elif self._attempts_exhausted(job):
            self._give_up(job, reason)
        else:
            self._record_retry(job, reason)
            self._requeue(job, reason, worker if revoked else None)
            return
        if revoked:
            worker.revoked(job)

    def _give_up(self, job: LiveJob, reason: str) -> None:
        """Mark a running job dead after its last attempt."""
        self._record_attempt(job, reason)
        plural = "" if job.attempts == 1 else "s"
        self._mark_dead(job, f"gave up after {job.attempts} attempt{plural}; last: {reason}")

    def clock_moved(self, seconds: float) -> None:
        """The wall clock was set by so many seconds. Running jobs keep the time that they have left.

        Jobs that wait for a time follow the clock: their time is a time of day.
        """
        self.leases.shift(seconds)
        self.shift_rates(seconds)
        self.lapse_at += seconds
        for worker in self.workers.values():
            for job in worker.running.jobs():
                if job.owner is worker:
                    job.started_at += seconds
        for job in self.broadcasts.copies:
            job.started_at += seconds

    def _expire_due(self) -> None:
        """Handle the leases that have expired."""
        for _ in range(self.policy.moves_per_tick):
            job = self.leases.pop_due(self.now)
            if job is None:
                return
            self._expire(job)

    def _expire(self, job: LiveJob) -> None:
        """The lease of a job expired: fail or requeue it."""
        job.deadline = 0.0
        elapsed = self.now - job.started_at
        worker = job.owner
        if worker is None:
            workers = self._workers_of(job)
            self._fail(job, FAILED, f"broadcast timed out after {elapsed:.1f} s")
            for worker in workers:
                worker.revoked(job)
            return
        ability = worker.abilities[job.function]
        limit = self.functions[job.function].max_run
        by_function = limit > 0.0 and not 0.0 < ability.timeout <= limit and not 0.0 < job.timeout <= limit
        by_ability = ability.timeout > 0.0 and (not job.timeout or ability.timeout <= job.timeout)
        if (by_function or by_ability) and ability.on_timeout is Expiry.FAIL:
            whose = f"max_run is {limit:g} s" if by_function else f"the worker allows {ability.timeout:g} s"
            self._fail(job, FAILED, f"timed out after {elapsed:.1f} s; {whose}")
            worker.revoked(job)
        else:
            for watcher in list(job.watchers or ()):
                if job in watcher.watching:  # an earlier watcher may have ended the job
                    watcher.expired(job)
            if job.owner is worker:
                self._lose_job(worker, job, f"timed out after {elapsed:.1f} s", revoked=True)

    def _reschedule(self, job: LiveJob, run_at: float, reason: str) -> None:
        """Take a running job from its worker and schedule it; an abandoned job is cancelled instead."""
        if self._is_abandoned(job):
            self._finish(job, CANCELLED, b"")
            return
        function = self.functions[job.function]
        enter(job, SCHEDULED)
        self._unassign(function, job)
        job.progress = None
        job.run_at = run_at
        if job.background:
            self.journal.changed(job)
        if self.observer is not None:
            self.observer.rescheduled(job, reason)
        self._wait_again(job)
        self._add_scheduled(function, job)
