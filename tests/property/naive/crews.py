"""The naive model: its state, crews, waking, and calls to watchers and workers."""

import itertools
from collections import defaultdict

from geartrain.engine.policy import JOB_BYTES
from geartrain.model import FailureAction
from tests.property.naive.records import NEVER, NaiveCrew, NaiveFunction, NaiveJob, NaiveWatcher, NaiveWorker

WAITING = ("scheduled", "blocked", "queued")
LIVING = (*WAITING, "running")


class NaiveState:
    """The state in plain lists, and how workers are found and woken."""

    def __init__(
        self,
        max_attempts: int,
        wake_count: int,
        wake_grace: float,
        dead_limit: int,
        moves_per_tick: int,
        max_queued_bytes: int,
    ) -> None:
        self.max_queued_bytes = max_queued_bytes
        self.max_attempts, self.wake_count = max_attempts, wake_count
        self.wake_grace, self.dead_limit, self.moves_per_tick = wake_grace, dead_limit, moves_per_tick
        self.now = 0.0
        self.workers: list[NaiveWorker] = []
        self.jobs: list[NaiveJob] = []  # including finished ones
        self.functions: defaultdict[bytes, NaiveFunction] = defaultdict(NaiveFunction)
        self.crews: list[NaiveCrew] = []
        self.planned_wakes: list[tuple[float, bytes | None]] = []  # None: the function was dropped
        self.freed: list[bytes | None] = []  # functions that have jobs to assign again
        self.dead_foreground: list[NaiveJob] = []
        self.numbers = itertools.count(1)
        self.clock = itertools.count(1)  # orders what happens at the same time
        self.heard: defaultdict[str, list[tuple[object, ...]]] = defaultdict(list)
        self.failures = FailureAction.KEEP
        self.handed: list[bytes] = []  # jobs that the engine assigned in this step
        self.ended_parents: list[NaiveJob] = []
        self.following = False  # children of ended jobs are being told

    # Verbs that workers and watchers may call; implemented in verbs.py

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
    ) -> NaiveJob | None:
        raise NotImplementedError

    def cancel(self, job: NaiveJob) -> None:
        raise NotImplementedError

    def claim(self, worker: NaiveWorker) -> NaiveJob | None:
        raise NotImplementedError

    def sleep(self, worker: NaiveWorker) -> None:
        raise NotImplementedError

    def complete(self, worker: NaiveWorker, job: NaiveJob) -> None:
        raise NotImplementedError

    def unwatch(self, job: NaiveJob, watcher: NaiveWatcher) -> None:
        raise NotImplementedError

    # Queries

    def alive(self) -> list[NaiveJob]:
        return [job for job in self.jobs if job.state in LIVING]

    def dead(self) -> list[NaiveJob]:
        return [job for job in self.jobs if job.state == "dead"]

    def queue(self, function: bytes, priority: int | None = None) -> list[NaiveJob]:
        return [
            job
            for job in self.jobs
            if job.state == "queued" and job.function == function and priority in (None, job.priority)
        ]

    def assignable(self, function: bytes, priority: int) -> list[NaiveJob]:
        """The queued jobs that a pause or a limit does not hold back."""
        naive_function = self.functions[function]
        if naive_function.rests:
            return []
        return [job for job in self.queue(function, priority) if not naive_function.partitions[job.partition].held]

    def running(self, function: bytes, partition: bytes | None = None) -> int:
        mine = [job for job in self.jobs if job.state == "running" and job.function == function]
        return len([job for job in mine if partition in (None, job.partition)])

    def awaited(self) -> list[tuple[float, int, bytes, bytes | None]]:
        """When functions and partitions (None: the whole function) are looked at again, and in which order."""
        found: list[tuple[float, int, bytes, bytes | None]] = []
        for function, naive_function in self.functions.items():
            if naive_function.awaited is not None:
                found.append((*naive_function.awaited, function, None))
            for name, partition in naive_function.partitions.items():
                if partition.awaited is not None:
                    found.append((*partition.awaited, function, name))
        return found

    def fits(self, growth: int) -> bool:
        """Whether the jobs may have so many bytes more."""
        jobs = [*self.alive(), *self.dead()]
        return sum(len(job.payload) + JOB_BYTES for job in jobs) + growth <= self.max_queued_bytes

    def total(self, function: bytes) -> int:
        return len([job for job in self.alive() if job.function == function])

    def deadline(self) -> float:
        times = [job.run_at for job in self.jobs if job.state == "scheduled"]
        times += [job.deadline for job in self.jobs if job.state == "running"]
        times += [job.expires_at for job in self.jobs if job.state in WAITING]
        times += [when for when, _ in self.planned_wakes]
        times += [entry[0] for entry in self.awaited()]
        times += [self.now] if self.freed else []
        return min(times, default=NEVER)

    # Crews and waking

    def crew_of(self, worker: NaiveWorker) -> NaiveCrew:
        if worker.crew is None:
            key = frozenset(worker.abilities)
            for crew in self.crews:
                if crew.key == key and not crew.own:
                    break
            else:
                crew = self.new_crew(worker)
            crew.members.append(worker)
            worker.crew = crew
        return worker.crew

    def new_crew(self, worker: NaiveWorker, own: bool = False) -> NaiveCrew:
        crew = NaiveCrew(frozenset(worker.abilities), own)
        self.crews.append(crew)
        for function in reversed(worker.abilities):
            self.functions[function].crews.append(crew)
            self.list_queues(crew, function)
        return crew

    def stop_sleeping(self, worker: NaiveWorker) -> None:
        if worker.crew is not None and worker in worker.crew.asleep:
            worker.crew.asleep.remove(worker)

    def leave_crew(self, worker: NaiveWorker) -> None:
        self.stop_sleeping(worker)
        crew, worker.crew = worker.crew, None
        if crew is None:
            return
        crew.members.remove(worker)
        if not crew.members:
            self.crews.remove(crew)
            for naive_function in self.functions.values():
                naive_function.crews = [other for other in naive_function.crews if other is not crew]
                naive_function.idle_crews = [other for other in naive_function.idle_crews if other is not crew]

    def change_crew(self, worker: NaiveWorker, function: bytes) -> None:
        """The worker began or ceased to offer a function: once it has a crew, it gets or keeps one of its own."""
        crew = worker.crew
        if crew is None:
            return
        asleep = worker in crew.asleep
        self.stop_sleeping(worker)
        if len(crew.members) > 1:
            crew.members.remove(worker)
            worker.crew = self.new_crew(worker, own=True)
            worker.crew.members.append(worker)
        else:
            crew.own, crew.key = True, frozenset(worker.abilities)
            naive_function = self.functions[function]
            if function in crew.key:
                naive_function.crews.append(crew)
                self.list_queues(crew, function)
                for priority in range(3):
                    crew.served[priority, function] = next(self.clock)  # its turn comes after the others
            else:
                naive_function.crews.remove(crew)
                naive_function.idle_crews = [other for other in naive_function.idle_crews if other is not crew]
                for turns in crew.turns:
                    turns[:] = [other for other in turns if other != function]
        if asleep:
            self.sleep(worker)

    def list_queues(self, crew: NaiveCrew, function: bytes) -> None:
        """List the queues of a function that have jobs to assign at the crew: at the end, if they are not listed."""
        for priority in range(3):
            if self.assignable(function, priority) and function not in crew.turns[priority]:
                crew.turns[priority].append(function)

    def look(self, crew: NaiveCrew) -> tuple[int, bytes] | None:
        """Return the next queue that has jobs to assign; others lose their turn."""
        for priority in range(3):
            while crew.turns[priority]:
                function = crew.turns[priority][0]
                if self.assignable(function, priority):
                    return priority, function
                crew.turns[priority].pop(0)
        return None

    def check_fairness(self, crew: NaiveCrew, priority: int, function: bytes) -> None:
        """No function is served twice while another has waited all the time."""
        before = crew.served.get((priority, function))
        for other in crew.key - {function}:
            naive_function = self.functions[other]
            if before is None or not self.assignable(other, priority):
                continue
            waited = naive_function.waiting_since[priority] < before
            assert not waited or crew.served.get((priority, other), 0) > before, "functions take turns"
        for higher in range(priority):
            for other in crew.key:
                assert not self.assignable(other, higher), "priority is global"
        crew.served[priority, function] = next(self.clock)

    def pop_idle_worker(self, function: bytes) -> NaiveWorker | None:
        """Return the next idle worker; a crew without one is not asked again before one of its workers becomes idle."""
        idle_crews = self.functions[function].idle_crews
        while idle_crews:
            crew = idle_crews.pop(0)
            sleeper = crew.asleep.pop(0) if crew.asleep else None
            if crew.asleep:
                idle_crews.append(crew)
            if sleeper is not None:
                return sleeper
        return None

    def wake_all(self, function: bytes) -> None:
        """Wake a worker for each job that may be assigned: no more of a partition than its limits can ever allow."""
        naive_function = self.functions[function]
        if naive_function.rests:
            return
        limits, count = naive_function.flow, 0
        for priority in range(3):
            jobs = self.assignable(function, priority)
            count += len(self.queue(function, priority)) if jobs and not limits.of_partitions else 0
            if limits.of_partitions:
                each = [limits.max_running_per_partition or NEVER]
                each += [limits.rate_per_partition.burst] if limits.rate_per_partition is not None else []
                waiting = len({job.partition for job in jobs})
                count += min(len(self.queue(function, priority)), int(waiting * min(each)))
        if limits.max_running:
            count = min(count, limits.max_running - self.running(function))
        if naive_function.bucket is not None:
            naive_function.bucket.refill(self.now)
            count = min(count, int(naive_function.bucket.tokens))
        self.wake_some(function, count)

    def wake_some(self, function: bytes, count: int) -> None:
        for _ in range(count):
            worker = self.pop_idle_worker(function)
            if worker is None:
                return
            self.wake(worker)
            if self.queue(function) and all(function != waiting for _, waiting in self.planned_wakes):
                self.planned_wakes.append((self.now + self.wake_grace, function))

    # Calls to workers, watchers and the journal

    def wake(self, worker: NaiveWorker) -> None:
        self.hear(worker, "wake")
        if worker.manner != "slow":
            job = self.claim(worker)
            self.hear(worker, "got", job and job.handle)
            if job is None and worker.manner == "parked":
                self.sleep(worker)
            elif job is not None and worker.manner == "swift":
                self.complete(worker, job)

    def tell(self, watchers: list[NaiveWatcher], what: str, job: NaiveJob) -> None:
        state = job.state  # an earlier watcher may have retried the job
        for watcher in watchers:
            self.heard[f"watcher {watcher.number}"].append((what, job.handle, state))
            self.react(watcher, what, job)

    def tell_expired(self, job: NaiveJob) -> None:
        for watcher in list(job.watchers):
            if watcher not in job.watchers:
                continue
            self.heard[f"watcher {watcher.number}"].append(("expired", job.handle, job.state))
            if watcher.manner == "angry":
                self.cancel(job)
            elif watcher.manner == "again":
                self.unwatch(job, watcher)

    def react(self, watcher: NaiveWatcher, what: str, job: NaiveJob) -> None:
        if watcher.manner == "again" and watcher.patience:
            watcher.patience -= 1
            self.submit(job.function, b"", b"again", job.priority, False, watcher)
        elif watcher.manner == "angry" and what != "complete":
            for other in self.alive():
                if watcher in other.watchers and other.state in LIVING:
                    self.cancel(other)

    def hear(self, worker: NaiveWorker, *words: object) -> None:
        self.heard[f"worker {worker.number}"].append(words)

    def note(self, what: str, job: NaiveJob, worker: NaiveWorker | None = None) -> None:
        if job.background:
            number = worker.number if worker is not None else None
            self.heard["journal"].append((what, job.handle, number))
