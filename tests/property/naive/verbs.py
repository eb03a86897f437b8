"""A naive model of the engine, as simple as possible: lists and linear scans, no counters.

It is written from the specification of the verbs. Where the specification allows several results (jobs with the very
same time that were scheduled), the model accepts any of them and follows the engine (`handed`).

Workers and watchers that are called may call another verb at once, as with the engine: see `NaiveWorker.manner` and
`NaiveWatcher.manner`.
"""

from collections.abc import Mapping, Sequence

from geartrain.engine.limits import FlowLimits
from geartrain.engine.policy import JOB_BYTES
from geartrain.model import Expiry
from tests.property.naive.crews import WAITING
from tests.property.naive.moves import Moves
from tests.property.naive.records import NEVER, NaiveJob, NaiveWatcher, NaiveWorker
from tests.property.recording import Row


class Naive(Moves):
    """The engine's verbs."""

    # Clients

    def submit(
        self,
        function: bytes,
        unique: bytes,
        payload: bytes,
        priority: int,
        background: bool,
        watcher: NaiveWatcher | None,
        run_at: float = 0.0,
        timeout: float = 0.0,
        replace: bool = False,
        count: int = 0,
        keeps_result: bool = True,
        expires_at: float = NEVER,
        partition: bytes = b"",
        parents: Sequence[NaiveJob] = (),
        runs_anyway: bool = False,
    ) -> NaiveJob | None:
        naive_function = self.functions[function]
        for model in self.alive() if unique else ():
            if model.function == function and model.unique == unique:
                replaces = replace and model.state != "running"
                growth = len(payload) - len(model.payload)
                if replaces and growth > 0 and not self.fits(growth):
                    return None
                self.join(model, background, watcher)
                if model.expires_at < expires_at:
                    model.expires_at = expires_at
                    self.note("changed", model)
                if replaces:
                    model.payload, model.priority, model.timeout, model.count = payload, priority, timeout, count
                    model.attempts = 0
                    self.stop(model)
                    self.note("changed", model)
                    self.place(model, run_at)
                return model
        if naive_function.limits[priority] and self.total(function) >= naive_function.limits[priority]:
            return None
        if not self.fits(len(payload) + JOB_BYTES):
            return None
        number = next(self.numbers)
        watchers = [] if watcher is None else [watcher]
        job = NaiveJob(
            number, b"H:localhost:%d" % number, function, unique, payload, priority, background, 0.0, timeout,
            count, watchers, keeps_result, expires_at=expires_at, partition=partition, after=list(parents),
            parents=list(parents), runs_anyway=runs_anyway,
        )  # fmt: skip
        separator = naive_function.flow.separator
        if not partition and separator and separator in unique:
            job.partition = unique.split(separator)[0]
        self.jobs.append(job)
        self.note("accepted", job)
        self.place(job, run_at)
        return job

    def join(self, job: NaiveJob, background: bool, watcher: NaiveWatcher | None) -> None:
        if background and not job.background:
            job.background = True
            self.note("accepted", job)
        if watcher is not None:
            job.watchers.append(watcher)

    def unwatch_all(self, watcher: NaiveWatcher) -> None:
        for job in self.alive():
            self.unwatch(job, watcher)

    def unwatch(self, job: NaiveJob, watcher: NaiveWatcher) -> None:
        if watcher in job.watchers:
            job.watchers = [other for other in job.watchers if other is not watcher]
            if job.abandoned and job.state != "running":
                self.end(job, "cancelled")

    def cancel(self, job: NaiveJob) -> None:
        holders = self.holders(job)
        for worker in holders:
            worker.forgiven.add(job.handle)
        self.fail_all(job, "cancelled")
        for worker in holders:
            self.hear(worker, "revoked", job.handle)

    def run_now(self, job: NaiveJob) -> None:
        if job.state == "scheduled":
            job.run_at = self.now
            self.note("changed", job)
            self.enqueue(job)

    def keep_result(self, job: NaiveJob) -> None:
        if not job.keeps_result:
            job.keeps_result = True
            self.note("changed", job)

    def retract(self, job: NaiveJob) -> None:
        job.background = False
        if not job.watchers and job.state != "running":
            self.end(job, "cancelled")

    # Workers

    def register(
        self, worker: NaiveWorker, function: bytes, timeout: float, on_timeout: Expiry, broadcast: bool
    ) -> None:
        self.functions[function].broadcast = broadcast
        known = function in worker.abilities
        worker.abilities[function] = (timeout, on_timeout)
        if not known:
            self.change_crew(worker, function)

    def unregister(self, worker: NaiveWorker, function: bytes) -> None:
        if worker.abilities.pop(function, None) is None:
            return
        self.change_crew(worker, function)
        lost = [job for job in worker.holding + worker.invited if job.function == function]
        worker.invited = [job for job in worker.invited if job.function != function]
        self.lose(worker, lost)

    def remove_worker(self, worker: NaiveWorker) -> None:
        self.leave_crew(worker)
        worker.abilities.clear()
        lost = worker.holding + worker.invited
        worker.invited = []
        self.lose(worker, lost)

    def claim(self, worker: NaiveWorker) -> NaiveJob | None:
        crew = self.crew_of(worker)
        self.stop_sleeping(worker)
        while worker.invited:
            copy = worker.invited.pop(0)
            if copy.state == "running":
                worker.holding.append(copy)
                return copy
        found = self.look(crew)
        if found is None:
            return None
        priority, function = found
        self.check_fairness(crew, priority, function)
        crew.turns[priority].remove(function)
        crew.turns[priority].append(function)
        job = self.next_job(function, priority)
        self.start(worker, job)
        return job if job in worker.holding else None

    def claim_from(self, worker: NaiveWorker, function: bytes, priority: int) -> NaiveJob | None:
        if not self.assignable(function, priority):
            return None
        self.crew_of(worker)
        self.stop_sleeping(worker)
        job = self.next_job(function, priority)
        self.start(worker, job)
        return job if job in worker.holding else None

    def sleep(self, worker: NaiveWorker) -> None:
        crew = self.crew_of(worker)
        if worker in crew.asleep:
            return
        if worker.invited or self.look(crew) is not None:
            self.wake(worker)
        else:
            crew.asleep.append(worker)
            for function in crew.key:
                if crew not in self.functions[function].idle_crews:
                    self.functions[function].idle_crews.append(crew)

    def complete(self, worker: NaiveWorker, job: NaiveJob) -> None:
        worker.holding.remove(job)
        self.tell(self.end(job, "done", worker), "complete", job)

    def fail(self, worker: NaiveWorker, job: NaiveJob, retry: bool = False, how: str = "fail") -> None:
        if job.shared and not self.give_up(worker, job):
            return
        if job.shared or not retry:
            worker.holding = [other for other in worker.holding if other is not job]
            self.tell(self.end(job, "failed", worker), how, job)
        elif 0 < self.max_attempts <= job.attempts and not job.abandoned:
            self.mark_dead(job)
        else:
            self.postpone(job, self.now + 2.0 ** (job.attempts - 1))

    def hand_back(self, worker: NaiveWorker, job: NaiveJob) -> None:
        if job.shared:
            self.lose(worker, [job])
            return
        job.attempts -= 1
        if job.abandoned:
            self.end(job, "cancelled")
        else:
            self.stop(job)
            job.run_at = self.now
            self.note("changed", job)
            self.enqueue(job)

    def reschedule(self, worker: NaiveWorker, job: NaiveJob, run_at: float, step: int) -> None:
        if job.shared:
            self.fail(worker, job)
        else:
            job.attempts = 0
            job.count += step
            self.postpone(job, run_at)

    # Operators

    def pause(self, function: bytes) -> None:
        self.functions[function].paused = True

    def resume(self, function: bytes) -> None:
        naive_function = self.functions[function]
        naive_function.paused = False
        naive_function.waiting_since = [next(self.clock)] * 3
        for crew in naive_function.crews:
            self.list_queues(crew, function)
        self.wake_all(function)

    def drop(self, function: bytes) -> bool:
        offered = any(function in worker.abilities for worker in self.workers)
        if function not in self.functions or offered or self.total(function):
            return False
        del self.functions[function]
        self.planned_wakes = [(when, None if name == function else name) for when, name in self.planned_wakes]
        self.freed = [None if name == function else name for name in self.freed]
        return True

    def step_clock(self, seconds: float) -> None:
        for job in self.jobs:
            job.deadline += seconds
        self.shift_limits(seconds)
        self.now += seconds

    def is_unused(self, function: bytes) -> bool:
        if function not in self.functions or any(function in worker.abilities for worker in self.workers):
            return False
        naive_function = self.functions[function]
        jobs = [job for job in [*self.alive(), *self.dead()] if job.function == function]
        return not (jobs or naive_function.paused or any(naive_function.limits) or naive_function.flow != FlowLimits())

    def retry(self, job: NaiveJob) -> bool:
        if job.unique and any((j.function, j.unique) == (job.function, job.unique) for j in self.alive()):
            return False
        self.dead_foreground = [other for other in self.dead_foreground if other is not job]
        job.attempts, job.expires_at, job.after, job.parents = 0, NEVER, [], []
        self.note("changed", job)
        if not job.background:
            job.background = True
            self.note("accepted", job)
        self.place(job, 0.0)
        return True

    def retry_failed(self, job: NaiveJob) -> str:
        if job.unique and any((j.function, j.unique) == (job.function, job.unique) for j in self.alive()):
            return "duplicate"
        if not self.fits(len(job.payload) + JOB_BYTES):
            return "full"
        job.attempts, job.expires_at, job.after, job.parents = 0, NEVER, [], []
        self.note("retried", job)
        self.place(job, 0.0)
        return "queued"

    def delete(self, job: NaiveJob) -> None:
        self.dead_foreground = [other for other in self.dead_foreground if other is not job]
        job.state = "cancelled"
        self.note("finished", job, None)
        self.follow(job)

    def restart(self, kept: Mapping[bytes, Row], limits: dict[bytes, FlowLimits]) -> None:
        """All workers and watchers are gone; stored jobs are queued again."""
        self.workers, self.crews, self.planned_wakes, self.dead_foreground, self.freed = [], [], [], [], []
        self.functions.clear()
        by_handle = {job.handle: job for job in self.alive() + self.dead()}
        for job in by_handle.values():
            job.watchers, job.deadline = [], NEVER
            if job.state != "dead" or not job.background:
                job.state = "lost"
        for function, its_limits in limits.items():
            self.set_limits(function, its_limits)
        stored = [by_handle[handle] for handle in kept]
        for job in stored:
            self.functions[job.function]
            job.attempts, job.run_at = kept[job.handle].attempts, kept[job.handle].run_at
            if job.after and job.state != "dead":
                job.state = "blocked"
            elif job.state != "dead":
                self.place(job, job.run_at)
                job.timed = False
        for job in stored:
            job.parents = [parent for parent in job.after if parent in stored]
            if job.state == "blocked" and not job.parents:
                self.release(job)

    def tick(self, now: float) -> float:
        self.now = now
        for _ in range(self.moves_per_tick):
            expired = [job for job in self.jobs if job.state in WAITING and job.expires_at <= now]
            if expired:
                self.fail_all(min(expired, key=lambda job: (job.expires_at, job.number)), "expired")
        for _ in range(self.moves_per_tick):
            due = [job for job in self.jobs if job.state == "scheduled" and job.run_at <= now]
            if due:
                self.enqueue(min(due, key=lambda job: (job.run_at, job.number)), timed=True)
        for _ in range(self.moves_per_tick):
            late = [job for job in self.jobs if job.state == "running" and job.deadline <= now]
            if late:
                self.expire(min(late, key=lambda job: (job.deadline, job.number)))
        for _ in range(self.moves_per_tick):
            self.check_due()
        while self.planned_wakes and self.planned_wakes[0][0] <= now:
            _, function = self.planned_wakes.pop(0)
            if function is not None:
                self.wake_all(function)
        freed, self.freed = self.freed, []
        for function in freed:
            if function is not None:
                self.wake_all(function)
        return self.deadline()
