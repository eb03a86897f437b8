"""Partitions of a function: jobs of one tenant, account or host, which take turns with those of others.

Within a function and priority, the partitions that have a job to assign are in a ring. Each turn takes the first job
of the first one, which goes to the end. So what a job costs does not depend on the number of jobs or partitions, and a
partition with ten jobs is done after ten rounds, however many jobs another one has.

A partition at its limit is *held*: it leaves the rings until one of its jobs ends or may start (`flow.py`). Jobs
without a partition are together in one that has an empty name.
"""

import itertools
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from geartrain.engine.job import LiveJob
from geartrain.engine.queue import JobList, JobQueue, LinkedList, LinkedNode

if TYPE_CHECKING:
    from geartrain.engine.function import Function

_OLDEST_AGAIN: Final = 1000  # jobs that come or go before the oldest job is looked for anew, among many partitions


class Lane(LinkedNode):
    """The jobs of a partition in one queue. It exists while it has any."""

    __slots__ = ("in_turn", "jobs", "partition")

    def __init__(self, partition: "Partition") -> None:
        super().__init__()
        self.partition = partition
        self.jobs = JobList()
        self.in_turn = False  # it is in the ring of its queue


class Partition:
    """A partition that has queued jobs, or running ones while these are limited."""

    __slots__ = ("awaited_at", "held", "lanes", "name", "next_at", "queued", "running")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.lanes: list[Lane | None] = [None, None, None]  # by priority
        self.queued = 0
        self.running = 0  # counted while running jobs are limited
        self.next_at = 0.0  # see `Rate`
        self.held = False  # it is at its limit, and in no ring
        self.awaited_at = 0.0  # when it will be looked at, because its rate allows another job; 0: it will not


class Partitions:
    """The partitions of a function, and the rings in which they take turns."""

    __slots__ = ("_changes", "_in_turn", "_oldest", "_queues", "_rings", "by_name", "is_limited", "taken_from")

    def __init__(self, function: "Function") -> None:
        self.by_name: dict[bytes, Partition] = {}
        self.is_limited = False  # whether running jobs of a partition are limited
        self.taken_from: Partition | None = None  # where the job is from that was taken last
        self._queues = function.queues
        self._rings: list[LinkedList[Lane]] = [LinkedList(), LinkedList(), LinkedList()]  # by priority
        self._in_turn = [0, 0, 0]  # how many lanes each of them has
        self._changes = 0  # jobs that came or went since `_oldest` was found
        self._oldest: list[float] = [0.0, 0.0, 0.0]  # by priority; 0: not known
        for queue in self._queues:
            self._adopt(queue)

    def _adopt(self, queue: JobQueue) -> None:
        """Make the jobs that a queue has those of the partition without a name."""
        queue.partitions = self
        if queue.size:
            partition = self.get(b"")
            lane = self._new_lane(partition, queue)
            queue.move_to(lane.jobs)
            partition.queued += lane.jobs.size
            self._join(queue, lane)

    def get(self, name: bytes) -> Partition:
        """Return the partition of that name; create it if it does not exist."""
        partition = self.by_name.get(name)
        if partition is None:
            partition = self.by_name[name] = Partition(name)
        return partition

    def first_of(self, queue: JobQueue, name: bytes) -> LiveJob | None:
        """Return the job that `take` would return at the turn of a partition."""
        partition = self.by_name.get(name)
        lane = None if partition is None else partition.lanes[queue.priority]
        return None if lane is None else lane.jobs.first()

    def holds(self, name: bytes) -> bool:
        """Whether a partition is at its limit."""
        partition = self.by_name.get(name)
        return partition is not None and partition.held

    def put(self, queue: JobQueue, job: LiveJob) -> None:
        """Insert a job in state queued."""
        partition = self.get(job.partition)
        lane = partition.lanes[queue.priority]
        if lane is None:
            lane = self._new_lane(partition, queue)
        lane.jobs.put(job)
        partition.queued += 1
        self._changes += 1
        if not lane.in_turn:
            if partition.held:
                queue.is_held = self._rings[queue.priority].is_empty
            else:
                self._join(queue, lane)

    def take(self, queue: JobQueue) -> LiveJob:
        """Remove and return the first job of the partition whose turn it is. The queue must not be held."""
        ring = self._rings[queue.priority]
        lane = ring.first
        assert lane is not None
        job = lane.jobs.take()
        partition = self.taken_from = lane.partition
        partition.queued -= 1
        self._changes += 1
        if not lane.jobs.size:
            self._end(queue, lane)
        else:
            ring.rotate()
        return job

    def give_turn(self, queue: JobQueue, name: bytes) -> None:
        """Let it be the turn of a partition that has a job to assign."""
        lane = self.by_name[name].lanes[queue.priority]
        assert lane is not None
        ring = self._rings[queue.priority]
        ring.remove(lane)
        ring.prepend(lane)

    def remove(self, queue: JobQueue, job: LiveJob) -> None:
        """Remove a job. Its state is no longer queued."""
        partition = self.by_name[job.partition]
        lane = partition.lanes[queue.priority]
        assert lane is not None
        lane.jobs.remove(job)
        partition.queued -= 1
        self._changes += 1
        if not lane.jobs.size:
            self._end(queue, lane)

    def hold(self, partition: Partition) -> None:
        """A partition is at its limit: it leaves the rings."""
        partition.held = True
        for priority, lane in enumerate(partition.lanes):
            if lane is not None and lane.in_turn:
                self._leave(self._queues[priority], lane)

    def release(self, partition: Partition) -> None:
        """A partition is below its limit again: its turn comes after the others."""
        partition.held = False
        for priority, lane in enumerate(partition.lanes):
            if lane is not None:
                self._join(self._queues[priority], lane)

    def forget(self, partition: Partition) -> None:
        """Remove a partition that has no jobs."""
        partition.awaited_at = 0.0
        del self.by_name[partition.name]

    def assignable(self, most: int) -> int:
        """How many jobs may be assigned, at most, if no partition may have more than so many assigned."""
        return sum(min(queue.size, lanes * most) for queue, lanes in zip(self._queues, self._in_turn, strict=True))

    # What lists and views ask for

    def first(self, queue: JobQueue) -> LiveJob | None:
        """Return the job that `take` would return."""
        lane = self._rings[queue.priority].first
        return None if lane is None else lane.jobs.first()

    def upcoming(self, queue: JobQueue, most: int) -> list[LiveJob]:
        """The next jobs, up to so many, in the order of the turns."""
        ring = self._rings[queue.priority]
        lanes = list(itertools.islice(iter(ring), most))
        turns = [deque(lane.jobs.upcoming(-(-most // len(lanes)))) for lane in lanes]
        jobs: list[LiveJob] = []
        while turns and len(jobs) < most:
            jobs += [turn.popleft() for turn in turns]
            turns = [turn for turn in turns if turn]
        return jobs[:most]

    def turns_before(self, queue: JobQueue, name: bytes) -> int:
        """After how many others it is the turn of the last job of a partition, about."""
        partition = self.by_name.get(name)
        lane = None if partition is None else partition.lanes[queue.priority]
        return 0 if lane is None else lane.jobs.size * self._in_turn[queue.priority]

    def jobs(self, queue: JobQueue) -> Iterator[LiveJob]:
        """The jobs in the order of their turns, then those of partitions that are held."""
        turns = deque(iter(lane.jobs) for lane in self._rings[queue.priority])
        while turns:
            lane_jobs = turns.popleft()
            job = next(lane_jobs, None)
            if job is not None:
                yield job
                turns.append(lane_jobs)
        for partition in list(self.by_name.values()):
            lane = partition.lanes[queue.priority]
            if lane is not None and not lane.in_turn:
                yield from lane.jobs

    def oldest_ready_at(self, queue: JobQueue) -> float:
        """When the job that waits longest was ready to run; among many partitions, it is not looked for each time."""
        if self._changes > len(self.by_name) // _OLDEST_AGAIN:
            self._changes = 0
            self._oldest = [0.0, 0.0, 0.0]
        oldest = self._oldest[queue.priority]
        if not oldest:
            lanes = (partition.lanes[queue.priority] for partition in self.by_name.values())
            oldest = min(lane.jobs.oldest_ready_at() for lane in lanes if lane is not None)
            self._oldest[queue.priority] = oldest
        return oldest

    # Rings

    def _new_lane(self, partition: Partition, queue: JobQueue) -> Lane:
        lane = partition.lanes[queue.priority] = Lane(partition)
        return lane

    def _join(self, queue: JobQueue, lane: Lane) -> None:
        lane.in_turn = True
        self._rings[queue.priority].append(lane)
        self._in_turn[queue.priority] += 1
        queue.is_held = False

    def _leave(self, queue: JobQueue, lane: Lane) -> None:
        lane.in_turn = False
        ring = self._rings[queue.priority]
        ring.remove(lane)
        self._in_turn[queue.priority] -= 1
        queue.is_held = ring.is_empty

    def _end(self, queue: JobQueue, lane: Lane) -> None:
        """A lane has no jobs left."""
        if lane.in_turn:
            self._leave(queue, lane)
        partition = lane.partition
        partition.lanes[queue.priority] = None
        if not partition.queued and not self.is_limited:
            del self.by_name[partition.name]
