"""The naive model: transitions of jobs between states."""

from geartrain.model import Expiry, FailureAction
from tests.property.naive.limits import LimitMoves
from tests.property.naive.records import NEVER, NaiveJob, NaivePartition, NaiveWatcher, NaiveWorker


class Moves(LimitMoves):
    """The transitions that the verbs are made of."""

    def place(self, job: NaiveJob, run_at: float) -> None:
        job.run_at = run_at or self.now
        if job.parents:
            job.state = "blocked"
        elif job.run_at > self.now:
            job.state = "scheduled"
        else:
            self.enqueue(job, timed=bool(run_at))

    def enqueue(self, job: NaiveJob, timed: bool = False, taken_from: NaiveWorker | None = None) -> None:
        naive_function = self.functions[job.function]
        partition = naive_function.partitions.setdefault(job.partition, NaivePartition())
        if not self.assignable(job.function, job.priority):
            naive_function.waiting_since[job.priority] = next(self.clock)
        if not any(other.partition == job.partition for other in self.queue(job.function, job.priority)):
            partition.turns[job.priority] = next(self.clock)
        job.state, job.arrived, job.timed = "queued", next(self.clock), timed
        for crew in naive_function.crews:
            self.list_queues(crew, job.function)
        if taken_from is not None:
            self.hear(taken_from, "revoked", job.handle)
        if self.assignable(job.function, job.priority):
            self.wake_some(job.function, self.wake_count)

    def start(self, worker: NaiveWorker, job: NaiveJob) -> None:
        job.state, job.attempts, job.started_at = "running", job.attempts + 1, self.now
        self.count_start(job)
        timeouts = [seconds for seconds in (worker.abilities[job.function][0], job.timeout) if seconds]
        job.deadline = self.now + min(timeouts) if timeouts else NEVER
        worker.holding.append(job)
        job.shared = self.functions[job.function].broadcast
        if job.shared:
            sleepers = []
            while (sleeper := self.pop_idle_worker(job.function)) is not None:
                sleepers.append(sleeper)
                sleeper.invited.append(job)
            for sleeper in sleepers:
                self.wake(sleeper)

    def stop(self, job: NaiveJob) -> None:
        """Take the job and its copies from all workers, or from its queue."""
        before, job.state = job.state, "between"
        for worker in self.holders(job):
            worker.holding.remove(job)
            if job.shared:
                worker.forgiven.add(job.handle)
        for worker in self.guests(job):
            worker.invited.remove(job)
        job.deadline = NEVER
        if before == "running":
            self.count_end(job)
        elif before == "queued":
            self.check_partition(job.function, job.partition)

    def end(self, job: NaiveJob, state: str, worker: NaiveWorker | None = None) -> list[NaiveWatcher]:
        if not job.shared and self.holders(job):
            worker = self.holders(job)[0]
        self.stop(job)
        watchers, job.watchers = job.watchers, []
        action = self.failures if state == "failed" and job.background else FailureAction.FORGET
        job.state = "dead" if action is FailureAction.DEAD else state
        if action is FailureAction.DEAD:
            self.note("changed", job)
        else:
            self.note("failed" if action is FailureAction.KEEP else "finished", job, worker)
            self.follow(job)
        return watchers

    def follow(self, parent: NaiveJob) -> None:
        """A job has ended: tell those that wait for it, one parent after the other."""
        self.ended_parents.append(parent)
        if self.following:
            return
        self.following = True
        while self.ended_parents:
            ended = self.ended_parents.pop(0)
            for job in [job for job in self.jobs if ended in job.parents]:
                if job.state != "blocked":
                    continue
                job.parents.remove(ended)
                if ended.state != "done" and not job.runs_anyway:
                    job.parents = []
                    self.fail_all(job, "cancelled")
                elif not job.parents:
                    self.release(job)
        self.following = False

    def release(self, job: NaiveJob) -> None:
        if job.run_at > self.now:
            job.state = "scheduled"
        else:
            job.run_at = self.now
            self.enqueue(job)

    def fail_all(self, job: NaiveJob, state: str) -> None:
        self.tell(self.end(job, state), "fail", job)

    def mark_dead(self, job: NaiveJob) -> None:
        self.stop(job)
        job.state = "dead"
        watchers, job.watchers = job.watchers, []
        self.note("changed", job)
        if not job.background:
            self.dead_foreground.append(job)
            while len(self.dead_foreground) > self.dead_limit:
                forgotten = self.dead_foreground.pop(0)
                forgotten.state = "forgotten"
                self.follow(forgotten)
        self.tell(watchers, "fail", job)

    def postpone(self, job: NaiveJob, run_at: float) -> None:
        if job.abandoned:
            self.end(job, "cancelled")
            return
        self.stop(job)
        job.state, job.run_at = "scheduled", run_at
        self.note("changed", job)

    def lose(self, worker: NaiveWorker, jobs: list[NaiveJob]) -> None:
        for job in jobs:
            if job.state != "running":
                continue
            if job.shared:
                if self.give_up(worker, job):
                    self.fail_all(job, "failed")
            elif job in worker.holding:
                self.lost(worker, job, told=False)

    def give_up(self, worker: NaiveWorker, job: NaiveJob) -> bool:
        """Drop a copy of a broadcast; return whether it was the last."""
        worker.holding = [other for other in worker.holding if other is not job]
        return not self.holders(job) and not self.guests(job)

    def lost(self, worker: NaiveWorker, job: NaiveJob, told: bool) -> None:
        if job.abandoned:
            self.end(job, "cancelled")
        elif 0 < self.max_attempts <= job.attempts:
            self.mark_dead(job)
        else:
            self.stop(job)
            job.run_at = self.now
            self.note("changed", job)
            self.enqueue(job, taken_from=worker if told else None)
            return
        if told:
            self.hear(worker, "revoked", job.handle)

    def expire(self, job: NaiveJob) -> None:
        holders = self.holders(job)
        if job.shared:
            self.fail_all(job, "failed")
        else:
            timeout, on_timeout = holders[0].abilities[job.function]
            if not timeout or 0 < job.timeout < timeout or on_timeout is Expiry.REQUEUE:
                self.tell_expired(job)
                if job in holders[0].holding:
                    self.lost(holders[0], job, told=True)
                return
            self.fail_all(job, "failed")
        for worker in holders:
            self.hear(worker, "revoked", job.handle)

    def holders(self, job: NaiveJob) -> list[NaiveWorker]:
        return [worker for worker in self.workers if job in worker.holding]

    def guests(self, job: NaiveJob) -> list[NaiveWorker]:
        return [worker for worker in self.workers if job in worker.invited]

    def next_job(self, function: bytes, priority: int) -> NaiveJob:
        """Return the next job of the partition that has waited longest for its turn."""
        jobs = self.assignable(function, priority)
        partitions = self.functions[function].partitions
        name = min((job.partition for job in jobs), key=lambda name: partitions[name].turns[priority])
        return self.first([job for job in jobs if job.partition == name])

    def first(self, queue: list[NaiveJob]) -> NaiveJob:
        """Return the next job; where several are allowed, the one that the engine chose."""
        time = min(job.run_at for job in queue)
        tied = [job for job in queue if job.run_at == time]
        if not any(job.timed for job in tied):
            tied = [min(tied, key=lambda job: job.arrived)]
        else:
            untimed = sorted((job for job in tied if not job.timed), key=lambda job: job.arrived)
            tied = [job for job in tied if job.timed] + untimed[:1]
        chosen = [job for handle in self.handed for job in tied if job.handle == handle]
        assert chosen, f"one of {[job.handle for job in tied]} is next, but the engine handed out {self.handed}"
        return chosen[0]
