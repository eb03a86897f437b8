"""The naive model: limits of functions and partitions, counted anew each time."""

from geartrain.engine.limits import FlowLimits
from geartrain.rates import Rate
from tests.property.naive.crews import NaiveState
from tests.property.naive.records import NaiveBucket, NaiveJob, NaiveLimited, NaivePartition


class LimitMoves(NaiveState):
    """When functions and partitions are at their limits, and what follows from it."""

    def set_limits(self, function: bytes, limits: FlowLimits) -> None:
        naive_function = self.functions[function]
        was_limited = naive_function.flow.of_partitions
        naive_function.flow, naive_function.awaited = limits, None
        naive_function.bucket = self.change_rate(naive_function.bucket, limits.rate)
        if limits.of_partitions and not was_limited:
            running = [job for job in self.jobs if job.state == "running" and job.function == function]
            for job in sorted(running, key=lambda job: (job.run_at, job.number)):
                naive_function.partitions.setdefault(job.partition, NaivePartition())
        for name, partition in list(naive_function.partitions.items()):
            partition.awaited = None
            partition.bucket = self.change_rate(partition.bucket, limits.rate_per_partition)
            self.check_partition(function, name)
        self.check_function(function)

    def change_rate(self, bucket: NaiveBucket | None, rate: Rate | None) -> NaiveBucket | None:
        if rate is None:
            return None
        if bucket is None:
            return NaiveBucket(rate, rate.burst, self.now)
        bucket.refill(self.now)
        missing = (bucket.rate.burst - bucket.tokens) * bucket.rate.interval  # seconds until it is full
        return NaiveBucket(rate, max(rate.burst - missing / rate.interval, 0.0), self.now)

    def count_start(self, job: NaiveJob) -> None:
        """A job has left its queue, and runs."""
        naive_function = self.functions[job.function]
        partition = naive_function.partitions[job.partition]
        partition.turns[job.priority] = next(self.clock)
        self.use_token(naive_function.bucket)
        self.check_function(job.function)
        if naive_function.flow.rate_per_partition is not None and partition.bucket is None:
            partition.bucket = self.change_rate(None, naive_function.flow.rate_per_partition)
        self.use_token(partition.bucket)
        self.check_partition(job.function, job.partition)

    def use_token(self, bucket: NaiveBucket | None) -> None:
        if bucket is not None:
            bucket.refill(self.now)
            assert bucket.tokens >= 1, "no job starts before its rate allows it"
            bucket.tokens -= 1

    def count_end(self, job: NaiveJob) -> None:
        """A job no longer runs."""
        self.check_function(job.function)
        if self.functions[job.function].flow.of_partitions:
            self.check_partition(job.function, job.partition)

    def check_function(self, function: bytes) -> None:
        """Let a function rest while it is at its limit."""
        naive_function = self.functions[function]
        full = 0 < naive_function.flow.max_running <= self.running(function)
        if naive_function.bucket is not None:
            naive_function.bucket.refill(self.now)
            due_at = naive_function.bucket.due_at()
            if due_at > self.now:
                full = True
                self.plan_check(naive_function, due_at)
        was_full, naive_function.full = naive_function.full, full
        if was_full and not full and not naive_function.paused:
            self.assign_again(function, [False] * 3)

    def check_partition(self, function: bytes, name: bytes) -> None:
        """Hold a partition while it is at its limit; forget one that has no jobs, when its bucket is full."""
        naive_function = self.functions[function]
        partition, limits = naive_function.partitions[name], naive_function.flow
        has_queued = any(job.partition == name for job in self.queue(function))
        running = self.running(function, name) if limits.of_partitions else 0
        held = 0 < limits.max_running_per_partition <= running
        look_at = 0.0
        if partition.bucket is not None:
            partition.bucket.refill(self.now)
            if partition.bucket.due_at() > self.now:
                held, look_at = True, partition.bucket.due_at()
            elif partition.bucket.full_at() > self.now and not running and not has_queued:
                look_at = partition.bucket.full_at()
        if look_at:
            self.plan_check(partition, look_at)
        elif not running and not has_queued:
            del naive_function.partitions[name]
            return
        before = [bool(self.assignable(function, priority)) for priority in range(3)]
        was_held, partition.held = partition.held, held
        if was_held and not held:
            partition.turns = [next(self.clock)] * 3
            if not naive_function.rests:
                self.assign_again(function, before)

    def plan_check(self, limited: NaiveLimited, when: float) -> None:
        if limited.awaited is None or when < limited.awaited[0]:
            limited.awaited = (when, next(self.clock))

    def assign_again(self, function: bytes, before: list[bool]) -> None:
        """A function has jobs again that may be assigned; `before`: at which priorities it had some."""
        naive_function = self.functions[function]
        for priority in range(3):
            if not before[priority]:
                naive_function.waiting_since[priority] = next(self.clock)
        for crew in naive_function.crews:
            self.list_queues(crew, function)
        has_jobs = any(self.assignable(function, priority) for priority in range(3))
        if has_jobs and naive_function.idle_crews and function not in self.freed:
            self.freed.append(function)

    def check_due(self) -> None:
        """Look at the first function or partition whose rate may allow another job."""
        due = [entry for entry in self.awaited() if entry[0] <= self.now]
        if due:
            _, _, function, name = min(due, key=lambda entry: entry[:2])
            naive_function = self.functions[function]
            if name is None:
                naive_function.awaited = None
                self.check_function(function)
            else:
                naive_function.partitions[name].awaited = None
                self.check_partition(function, name)

    def shift_limits(self, seconds: float) -> None:
        """The clock is set."""
        for naive_function in self.functions.values():
            for limited in (naive_function, *naive_function.partitions.values()):
                if limited.bucket is not None:
                    limited.bucket.filled_at += seconds
                if limited.awaited is not None:
                    limited.awaited = (limited.awaited[0] + seconds, limited.awaited[1])
