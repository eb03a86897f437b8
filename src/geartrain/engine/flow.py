"""Limits of a function: how many of its jobs run at once, and how often one starts, together and for each partition.

A function at its limit rests like a paused one: none of its jobs is assigned. A partition at its limit is held: the
others go on. Both are looked at again whenever a job starts or ends, and when a rate allows the next job. Jobs above a
limit that was lowered go on.

What is counted are the jobs that run on this server's account: those that another server has borrowed are among them.
"""

import heapq

from geartrain.engine import crew as crews
from geartrain.engine.deadlines import NEVER
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.limits import FlowLimits
from geartrain.engine.partitions import Partition, Partitions
from geartrain.engine.policy import Policy
from geartrain.engine.waking import WorkerWaking


class FunctionFlow:
    """The limits of a function, and what they have allowed so far."""

    __slots__ = (
        "awaited_at",
        "interval",
        "limits",
        "max_running",
        "next_at",
        "partition_interval",
        "partition_max_running",
        "partition_spare",
        "spare",
    )

    def __init__(self) -> None:
        self.next_at = 0.0  # see `Rate`
        self.awaited_at = 0.0  # when it will be looked at, because its rate allows another job; 0: it will not
        self.change(FlowLimits())

    def change(self, limits: FlowLimits) -> None:
        """Set the limits, and what every job that starts needs of them."""
        self.limits = limits
        self.max_running = limits.max_running
        self.partition_max_running = limits.max_running_per_partition
        rate, each = limits.rate, limits.rate_per_partition
        # Seconds between two jobs (0: no rate), and by how much `next_at` may be in the future.
        self.interval, self.spare = (0.0, 0.0) if rate is None else (rate.interval, rate.spare)
        self.partition_interval, self.partition_spare = (0.0, 0.0) if each is None else (each.interval, each.spare)

    def assignable(self, function: Function, now: float) -> int:
        """How many of the queued jobs may be assigned, at most. The function must not rest."""
        limits, partitions = self.limits, function.partitions
        count = function.assignable
        if partitions is not None and partitions.is_limited:
            count = partitions.assignable(limits.most_per_partition)
        if limits.max_running:
            count = min(count, limits.max_running - function.running)
        if limits.rate is not None:
            count = min(count, limits.rate.allowed(self.next_at, now))
        return count


class FlowControl(WorkerWaking):
    """The engine's part that keeps the limits."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        # When a function or a partition is looked at again; numbered, because these have no order. An entry is stale
        # unless it has the time that they have in `awaited_at`.
        self._awaited: list[tuple[float, int, Function, Partition | None]] = []
        self._awaited_number = 0
        self.is_awaiting = False  # there are entries, though all may be stale

    def set_limits(self, function: Function, limits: FlowLimits) -> None:
        """Limit the running jobs of a function."""
        flow = function.flow
        if flow is None:
            if limits == FlowLimits():
                return
            flow = function.flow = FunctionFlow()
        flow.change(limits)
        flow.awaited_at = 0.0  # it may be too late for another rate
        if limits.rate is None:
            flow.next_at = 0.0
        self._limit_partitions(function, limits)
        self._check_function(function, flow)
        if limits == FlowLimits():
            function.flow = None

    def _limit_partitions(self, function: Function, limits: FlowLimits) -> None:
        """Count running jobs by partition from now on, or no longer."""
        partitions = function.partitions
        if limits.of_partitions and partitions is None:
            partitions = self._divide(function)
        if partitions is None:
            return
        if limits.of_partitions and not partitions.is_limited:
            for job in sorted(self._running_jobs(function)):
                partitions.get(job.partition).running += 1
        partitions.is_limited = limits.of_partitions
        for partition in list(partitions.by_name.values()):
            partition.awaited_at = 0.0
            if limits.rate_per_partition is None:
                partition.next_at = 0.0
            if not limits.of_partitions:
                partition.running = 0
            self._check_partition(function, partitions, partition, limits)

    def _running_jobs(self, function: Function) -> list[LiveJob]:
        raise NotImplementedError

    def _divide(self, function: Function) -> Partitions:
        """Let the jobs of a function take turns by partition."""
        partitions = function.partitions = Partitions(function)
        return partitions

    def count_start(self, function: Function, flow: FunctionFlow, partition: Partition | None) -> None:
        """A job of a limited function has started, from that partition if it has any; it is counted as running.

        This is done for every job. What has not reached a limit needs no closer look.
        """
        now = self.now
        at_limit = 0 < flow.max_running <= function.running
        if flow.interval:
            flow.next_at = max(flow.next_at, now) + flow.interval
            at_limit = at_limit or flow.next_at - flow.spare > now
        if at_limit or function.full:
            self._check_function(function, flow)
        partitions = function.partitions
        if partitions is not None and partitions.is_limited and partition is not None:
            partition.running += 1
            at_limit = 0 < flow.partition_max_running <= partition.running
            if flow.partition_interval:
                partition.next_at = max(partition.next_at, now) + flow.partition_interval
                if at_limit or partition.held or partition.next_at - flow.partition_spare > now:
                    self._check_partition(function, partitions, partition, flow.limits)
            elif at_limit and not partition.held:
                partitions.hold(partition)

    def count_end(self, function: Function, flow: FunctionFlow, job: LiveJob) -> None:
        """A job of a limited function no longer runs; it is counted no more."""
        if function.full:
            self._check_function(function, flow)
        partitions = function.partitions
        if partitions is not None and partitions.is_limited:
            partition = partitions.get(job.partition)
            running = partition.running = partition.running - 1
            if flow.partition_interval:
                if partition.held or not (running or partition.queued):
                    self._check_partition(function, partitions, partition, flow.limits)
            elif not (running or partition.queued):
                partitions.forget(partition)
            elif partition.held and running < flow.partition_max_running:
                self._release_partition(function, partitions, partition)

    def check_removed(self, function: Function, flow: FunctionFlow, job: LiveJob) -> None:
        """A queued job of a limited function is gone: its partition may have no jobs left."""
        partitions = function.partitions
        if partitions is not None and partitions.is_limited:
            partition = partitions.by_name.get(job.partition)
            if partition is not None:
                self._check_partition(function, partitions, partition, flow.limits)

    def _check_function(self, function: Function, flow: FunctionFlow) -> None:
        """Let a function rest while it is at its limit."""
        limits = flow.limits
        full = 0 < limits.max_running <= function.running
        if limits.rate is not None:
            flow.next_at = limits.rate.capped(flow.next_at, self.now)
            due_at = limits.rate.due_at(flow.next_at)
            if due_at > self.now:
                full = True
                if not 0.0 < flow.awaited_at <= due_at:
                    flow.awaited_at = due_at
                    self._await(due_at, function, None)
        if full is not function.full:
            function.full = full
            if function.update_rest():
                self.assign_again(function)

    def _check_partition(
        self, function: Function, partitions: Partitions, partition: Partition, limits: FlowLimits
    ) -> None:
        """Hold a partition while it is at its limit; forget one that has no jobs and has waited for its rate."""
        held = 0 < limits.max_running_per_partition <= partition.running
        look_at = 0.0
        rate = limits.rate_per_partition
        if rate is not None:
            partition.next_at = rate.capped(partition.next_at, self.now)
            due_at = rate.due_at(partition.next_at)
            if due_at > self.now:
                held = True
                look_at = due_at
            elif partition.next_at > self.now and not partition.running and not partition.queued:
                look_at = partition.next_at
        if look_at:
            if not 0.0 < partition.awaited_at <= look_at:
                partition.awaited_at = look_at
                self._await(look_at, function, partition)
        elif not partition.running and not partition.queued:
            partitions.forget(partition)
            return
        if held and not partition.held:
            partitions.hold(partition)
        elif partition.held and not held:
            self._release_partition(function, partitions, partition)

    def _release_partition(self, function: Function, partitions: Partitions, partition: Partition) -> None:
        """A partition is below its limit again."""
        partitions.release(partition)
        if not function.resting:
            self.assign_again(function)

    def _await(self, at: float, function: Function, partition: Partition | None) -> None:
        self._awaited_number += 1
        heapq.heappush(self._awaited, (at, self._awaited_number, function, partition))
        self.is_awaiting = True

    def next_check(self) -> float:
        """When the next function or partition is looked at again, or NEVER."""
        awaited = self._awaited
        while awaited:
            at, _, function, partition = awaited[0]
            flow = function.flow
            if flow is not None and at == (flow.awaited_at if partition is None else partition.awaited_at):
                return at
            heapq.heappop(awaited)
        self.is_awaiting = False
        return NEVER

    def _check_due(self) -> None:
        """Look again at the functions and partitions whose rates allow another job."""
        for _ in range(self.policy.moves_per_tick):
            if not self.is_awaiting or self.next_check() > self.now:
                return
            _, _, function, partition = heapq.heappop(self._awaited)
            flow, partitions = function.flow, function.partitions
            assert flow is not None
            if partition is None:
                flow.awaited_at = 0.0
                self._check_function(function, flow)
            elif partitions is not None:
                partition.awaited_at = 0.0
                self._check_partition(function, partitions, partition, flow.limits)

    def assign_again(self, function: Function) -> None:
        """A function has jobs again that may be assigned: to workers that ask at once, to idle ones with the next tick.

        Those are not woken here, because this may be in the middle of a move.
        """
        has_jobs = False
        for queue in function.queues:
            if queue.size and not queue.is_held:
                has_jobs = True
                crews.announce(queue)
        if has_jobs:
            self.wake_soon(function)

    def shift_rates(self, seconds: float) -> None:
        """The clock was set: what was allowed so far stays as long ago as it was."""
        self._awaited = [(at + seconds, number, function, part) for at, number, function, part in self._awaited]
        for function in self.functions.values():
            flow, partitions = function.flow, function.partitions
            if flow is None:
                continue
            flow.next_at += seconds
            flow.awaited_at += seconds if flow.awaited_at else 0.0
            for partition in partitions.by_name.values() if partitions is not None else ():
                partition.next_at += seconds
                partition.awaited_at += seconds if partition.awaited_at else 0.0
