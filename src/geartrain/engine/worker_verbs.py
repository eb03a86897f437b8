"""What workers do: offer functions, claim jobs, report on them, leave."""

from geartrain.engine import crew as crews
from geartrain.engine.client_verbs import ClientVerbs
from geartrain.engine.crew import Crew
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.lifecycle import CANCELLED, DONE, FAILED, RUNNING, SCHEDULED, enter
from geartrain.engine.queue import JobQueue
from geartrain.engine.worker import Ability, Worker
from geartrain.model import Expiry


class WorkerVerbs(ClientVerbs):
    """The engine's side that workers come to.

    The verbs that report on a job take one that the worker has (`worker.running` knows); doors refuse others.
    """

    def register(
        self,
        worker: Worker,
        function: bytes,
        timeout: float = 0.0,
        on_timeout: Expiry = Expiry.FAIL,
        broadcast: bool = False,
    ) -> None:
        """The worker offers a function from now on."""
        if function in self.builtin_workers and worker is not self.builtin_workers[function]:
            return  # nobody else may answer for the server
        home = self.function(function)
        home.broadcast = broadcast
        known = home.name in worker.abilities
        worker.abilities[home.name] = Ability(timeout, on_timeout)
        if not known:
            home.workers += 1
            self._list_worker(worker)
            self._regroup(worker)

    def unregister(self, worker: Worker, function: bytes) -> None:
        """The worker offers a function no longer; what it runs of it goes back to the queue."""
        if worker.abilities.pop(function, None) is None:
            return
        self.functions[function].workers -= 1
        self._regroup(worker)
        jobs = [job for job in self._assigned_jobs(worker) if job.function == function]
        if worker.inbox:
            worker.inbox = [job for job in worker.inbox if job.function != function]
        self._lose(worker, jobs, "its worker stopped offering the function")

    def remove_worker(self, worker: Worker) -> None:
        """The worker is gone, or offers nothing any more; what it runs goes back to the queue."""
        self._leave_crew(worker)
        for function in worker.abilities:
            self.functions[function].workers -= 1
        worker.abilities.clear()
        self.workers.pop(worker.number, None)
        jobs = self._assigned_jobs(worker)
        worker.inbox = None
        self._lose(worker, jobs, "its worker left")

    def claim(self, worker: Worker) -> LiveJob | None:
        """Give the worker its next job, if there is one. It is no longer idle."""
        crew = worker.crew
        if crew is None:
            crew = self._join_crew(worker)
        if worker.idle:
            self.stop_sleeping(worker)
        if worker.inbox:
            copy = self.broadcasts.collect(worker)
            if copy is not None:
                return copy
        turn = crew.next_turn()
        return None if turn is None else self._assign(crew, worker, turn.function, turn.queue)

    def claim_from(self, worker: Worker, function: bytes, priority: int) -> LiveJob | None:
        """The same, but only from the queue of one function and priority, which the worker offers."""
        home = self.functions.get(function)
        if home is None or home.paused:
            return None
        queue = home.queues[priority]
        if not queue.size or home.name not in worker.abilities:
            return None
        crew = worker.crew
        if crew is None:
            crew = self._join_crew(worker)
        if worker.idle:
            self.stop_sleeping(worker)
        return self._assign(crew, worker, home, queue)

    def _assign(self, crew: Crew, worker: Worker, home: Function, queue: JobQueue) -> LiveJob | None:
        """The first job of a lane is the worker's now."""
        job = queue.take()
        now = self.now
        crew.last_claim_at = now
        enter(job, RUNNING)
        job.owner = worker
        job.attempts += 1
        job.started_at = now
        worker.running.add(job)
        home.running += 1
        self.running += 1
        ready = job.run_at
        if ready < job.submitted_at:  # a time in the past is only a place in the queue
            ready = job.submitted_at
        self.wait_times.add(now - ready)
        timeout = worker.abilities[job.function].timeout
        if job.timeout and (not timeout or job.timeout < timeout):
            timeout = job.timeout
        if timeout:
            job.deadline = now + timeout
            self.leases.add(job.deadline, job)
        if self.observer is not None:
            self.observer.started(job)
        if home.broadcast:
            self._broadcast(home, job, worker)
            if job.handle not in worker.running:  # one of those who were woken has completed it already
                return None
        return job

    def sleep(self, worker: Worker) -> None:
        """The worker waits to be woken; at once, if there is work already."""
        if worker.idle:
            return
        crew = worker.crew
        if crew is None:
            crew = self._join_crew(worker)
        if worker.inbox or crew.has_work():
            worker.wake()
            return
        crew.add_idle(worker)

    def stop_sleeping(self, worker: Worker) -> None:
        """The worker no longer waits to be woken."""
        if worker.idle and worker.crew is not None:
            worker.crew.remove_idle(worker)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """The worker says how far it is."""
        job.progress = progress
        if self.observer is not None:
            self.observer.progress(job, progress)
        for watcher in job.watchers or ():
            watcher.progress(job, progress)

    def data(self, job: LiveJob, data: bytes) -> None:
        """The worker sends a part of the result."""
        for watcher in job.watchers or ():
            watcher.data(job, data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        """The worker sends a warning."""
        for watcher in job.watchers or ():
            watcher.warning(job, data)

    def complete(self, worker: Worker, job: LiveJob, result: bytes) -> None:
        """The worker is done with the job."""
        if job.owner is not worker:
            worker.running.drop(job)
        watchers = self._finish(job, DONE, result, worker)
        if watchers:
            for watcher in watchers:
                watcher.complete(job, result)

    def fail(self, worker: Worker, job: LiveJob, reason: str = "its worker said so", retry: bool = False) -> None:
        """The worker could not do the job: finally, or so that it is to be tried again after a while."""
        if job.owner is not worker and not self.broadcasts.drop(job, worker):
            return
        if not retry or job.owner is not worker:
            self._fail(job, FAILED, reason, worker)
        elif self._exhausted(job) and not self._abandoned(job):
            self._note_attempt(job, reason)
            self._mark_dead(job, f"failed {job.attempts} times, the last time: {reason}")
        else:
            self._note_attempt(job, reason)
            self._reschedule(job, self.now + self.policy.delay_after(job.attempts), reason)

    def raise_exception(self, worker: Worker, job: LiveJob, data: bytes, code: int = 1) -> None:
        """The worker failed, and has something to say about it; `code` is its number for what went wrong."""
        if job.owner is not worker and not self.broadcasts.drop(job, worker):
            return
        job.reason = data[:1000].decode("utf-8", "replace")
        job.code = code
        watchers = self._finish(job, FAILED, data, worker)
        if watchers:
            for watcher in watchers:
                watcher.exception(job, data)

    def lease(self, job: LiveJob, seconds: float) -> None:
        """A running job that has no deadline yet goes back to its queue if it is not finished by then."""
        if job.state is RUNNING and not job.deadline:
            job.deadline = self.now + seconds
            self.leases.add(job.deadline, job)

    def hand_back(self, worker: Worker, job: LiveJob) -> None:
        """The worker cannot take the job after all; it counts as if it had never been given to it."""
        if job.owner is not worker:
            self._lose(worker, [job], "its worker gave it back")
            return
        job.attempts -= 1
        if self._abandoned(job):
            self._finish(job, CANCELLED, b"")
        else:
            self._requeue(job, "its worker gave it back")

    def reschedule(self, worker: Worker, job: LiveJob, run_at: float, step: int = 0, anew: bool = True) -> None:
        """The worker wants the job to run again at a later time; `step` is added to its run counter.

        Its attempts are counted anew, or else as if it had not been given to this worker.
        """
        if job.owner is not worker:
            self.fail(worker, job)
            return
        job.attempts = 0 if anew else job.attempts - 1
        job.count += step
        self._reschedule(job, run_at, "its worker put it off")

    def _list_worker(self, worker: Worker) -> None:
        """The worker offers something: it is listed until it leaves."""
        if not worker.number:
            worker.number = self.next_worker
            self.next_worker += 1
            worker.since = self.now
        if worker.number > 0:
            self.workers[worker.number] = worker

    def _regroup(self, worker: Worker) -> None:
        """The worker's abilities changed: leave its crew; if it was waiting, wait in the new one."""
        idle = worker.idle
        self._leave_crew(worker)
        if idle:
            self.sleep(worker)

    def _broadcast(self, home: Function, job: LiveJob, first: Worker) -> None:
        """`first` claimed a broadcast job: every worker that waits gets it too."""
        job.owner = None
        others: list[Worker] = []
        while (other := crews.next_idle(home)) is not None:
            others.append(other)
        self.broadcasts.share(job, first, others)
        for other in others:
            other.wake()

    def _exhausted(self, job: LiveJob) -> bool:
        limit = self.policy.max_attempts
        return limit > 0 and job.attempts >= limit

    def _abandoned(self, job: LiveJob) -> bool:
        return not job.background and not job.watchers

    def _assigned_jobs(self, worker: Worker) -> list[LiveJob]:
        """What it runs, and the copies it has yet to claim."""
        return [*worker.running.jobs(), *(worker.inbox or ())]

    def _lose(self, worker: Worker, jobs: list[LiveJob], why: str) -> None:
        """A worker will never answer for these jobs. Whoever hears of one loss may have ended the others."""
        for job in jobs:
            if job.owner is worker:
                self._lost(worker, job, why)
            elif worker in self.broadcasts.copies.get(job, ()) and self.broadcasts.drop(job, worker):
                self._fail(job, FAILED, "every worker that got it is gone")

    def _lost(self, worker: Worker, job: LiveJob, why: str, revoked: bool = False) -> None:
        """Take a job from its owner, who will never answer for it; `revoked`: tell it so."""
        if self._abandoned(job):
            self._finish(job, CANCELLED, b"")
        elif self._exhausted(job):
            self._note_attempt(job, why)
            givers = f"{job.attempts} worker{'' if job.attempts == 1 else 's'}"
            self._mark_dead(job, f"given to {givers} in vain, the last time because {why}")
        else:
            self._note_attempt(job, why)
            self._requeue(job, why, worker if revoked else None)
            return
        if revoked:
            worker.revoked(job)

    def _expire_due(self) -> None:
        """Take back the jobs whose leases have run out."""
        for _ in range(self.policy.moves_per_tick):
            job = self.leases.due(self.now)
            if job is None:
                return
            self._expire(job)

    def _expire(self, job: LiveJob) -> None:
        """A job's lease ran out."""
        job.deadline = 0.0
        worker = job.owner
        if worker is None:
            workers = self._holders(job)
            self._fail(job, FAILED, "no worker completed the broadcast in time")
            for worker in workers:
                worker.revoked(job)
            return
        ability = worker.abilities[job.function]
        limit = self.now - job.started_at
        by_ability = ability.timeout > 0.0 and (not job.timeout or ability.timeout <= job.timeout)
        if by_ability and ability.on_timeout is Expiry.FAIL:
            self._fail(
                job,
                FAILED,
                f"it did not finish within the {ability.timeout:g} seconds that its worker allows",
            )
            worker.revoked(job)
        else:
            for watcher in list(job.watchers or ()):
                if job in watcher.watching:  # it has not left, and nobody has ended the job, at that news
                    watcher.expired(job)
            if job.owner is worker:
                self._lost(worker, job, f"it did not finish within {limit:.1f} seconds", revoked=True)

    def _reschedule(self, job: LiveJob, run_at: float, why: str) -> None:
        """Take a running job from its worker and let it run again later, unless nobody wants it any more."""
        if self._abandoned(job):
            self._finish(job, CANCELLED, b"")
            return
        home = self.functions[job.function]
        enter(job, SCHEDULED)
        self._release(home, job)
        job.run_at = run_at
        if job.background:
            self.journal.changed(job)
        if self.observer is not None:
            self.observer.rescheduled(job, why)
        self._add_scheduled(home, job)
