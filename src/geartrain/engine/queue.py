"""The queue of one function at one priority, and the linked list that crews and idle workers are kept in.

Jobs are ordered by `run_at`. A new job nearly always has the latest time, so it is appended to a doubly linked list
that runs through the jobs themselves: putting, removing and taking cost the same at any length. A job with an earlier
time (a Periodic job whose time lies in the past) goes to a small heap beside the list, and `take` merges the two.

A job that is removed from the heap is only counted as stale. Its entry is dropped when it comes to the top, or when
stale entries outnumber the others.

From the first job with a partition on, each partition of the function has such a list of its own (`partitions.py`).
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from mypy_extensions import i16, i64, mypyc_attr

from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED

if TYPE_CHECKING:
    from geartrain.engine.crew import ReadyQueue
    from geartrain.engine.partitions import Partitions
    from geartrain.engine.payload_memory import PayloadMemory


_SWEEP_FROM: Final = 64  # stale entries; rebuilding the heap for fewer is not worth it


class JobList:
    """Queued jobs, the earliest `run_at` first."""

    __slots__ = ("_early", "_first", "_last", "_stale", "size")

    def __init__(self) -> None:
        self.size: i64 = 0  # how many jobs are queued
        self._first: LiveJob | None = None  # ends of the linked list
        self._last: LiveJob | None = None
        self._early: list[LiveJob] | None = None  # heap of jobs that belong before the end; created on demand
        self._stale = 0  # entries of `_early` whose job is no longer queued

    def put(self, job: LiveJob) -> None:
        """Insert a job in state queued."""
        self.size += 1
        last = self._last
        if last is None:
            self._first = self._last = job
        elif job.run_at >= last.run_at:
            last.next = job
            job.previous = last
            self._last = job
        else:
            if self._early is None:
                self._early = []
            heapq.heappush(self._early, job)

    def take(self) -> LiveJob:
        """Remove and return the first job. The queue must not be empty."""
        self.size -= 1
        job = self._first
        early = self._first_early() if self._early else None
        if self._early and early is not None and (job is None or early < job):
            return heapq.heappop(self._early)
        assert job is not None
        following = job.next
        self._first = following
        if following is None:
            self._last = None
        else:
            following.previous = job.next = None
        return job

    def first(self) -> LiveJob | None:
        """Return the job that `take` would return."""
        job = self._first
        early = self._first_early() if self._early else None
        return early if job is None or (early is not None and early < job) else job

    def oldest_ready_at(self) -> float:
        """When the first job was ready to run; the queue must not be empty. No job is ready before its submission."""
        early = self._first_early() if self._early else None
        return min(max(job.run_at, job.submitted_at) for job in (self._first, early) if job is not None)

    def remove(self, job: LiveJob) -> None:
        """Remove a job that is cancelled or replaced. Its state is no longer queued."""
        self.size -= 1
        previous, following = job.previous, job.next
        if previous is None and self._first is not job:
            self._count_stale()
            return
        if previous is None:
            self._first = following
        else:
            previous.next = following
        if following is None:
            self._last = previous
        else:
            following.previous = previous
        job.previous = job.next = None

    def __iter__(self) -> Iterator[LiveJob]:
        """The queued jobs in order."""
        jobs: Iterable[LiveJob] = self._linked()
        if self._early:
            jobs = heapq.merge(jobs, sorted(self._early))
        for job in jobs:
            if job.state is QUEUED:
                yield job

    def __reversed__(self) -> Iterator[LiveJob]:
        """The queued jobs, the last one first."""
        jobs: Iterable[LiveJob] = self._linked_backwards()
        if self._early:
            jobs = heapq.merge(jobs, sorted(self._early, reverse=True), reverse=True)
        for job in jobs:
            if job.state is QUEUED:
                yield job

    def upcoming(self, most: int) -> list[LiveJob]:
        """The first jobs, up to so many. The cost does not depend on how many there are."""
        linked: list[LiveJob] = []
        job = self._first
        while job is not None and len(linked) < most:
            linked.append(job)
            job = job.next
        if not self._early:
            return linked
        return list(itertools.islice(heapq.merge(linked, _earliest(self._early, most)), most))

    def move_to(self, other: "JobList") -> None:
        """Move all jobs to a list that is empty."""
        other.size, other._first, other._last = self.size, self._first, self._last
        other._early, other._stale = self._early, self._stale
        self._first = self._last = self._early = None
        self._stale = 0

    def _linked_backwards(self) -> Iterator[LiveJob]:
        job = self._last
        while job is not None:
            yield job
            job = job.previous

    def _linked(self) -> Iterator[LiveJob]:
        job = self._first
        while job is not None:
            following = job.next
            yield job
            job = following

    def _first_early(self) -> LiveJob | None:
        """Return the first queued job of the heap."""
        early = self._early
        while early:
            if early[0].state is QUEUED:
                return early[0]
            heapq.heappop(early)
            self._stale -= 1
        return None

    def _count_stale(self) -> None:
        early = self._early
        assert early is not None
        self._stale += 1
        if self._stale > len(early) - self._stale + _SWEEP_FROM:
            self._early = [job for job in early if job.state is QUEUED]
            heapq.heapify(self._early)
            self._stale = 0


def _earliest(heap: list[LiveJob], most: int) -> list[LiveJob]:
    """The first queued jobs of a heap, in order, without looking at the others."""
    jobs: list[LiveJob] = []
    candidates = [(heap[0], 0)]
    while candidates and len(jobs) < most:
        job, place = heapq.heappop(candidates)
        if job.state is QUEUED:
            jobs.append(job)
        for below in (2 * place + 1, 2 * place + 2):
            if below < len(heap):
                heapq.heappush(candidates, (heap[below], below))
    return jobs


class JobQueue(JobList):
    """The queued jobs of a function at one priority, in the order in which they are assigned."""

    __slots__ = ("cold", "is_held", "is_reading", "look_after", "parked", "partitions", "payloads", "priority")

    def __init__(self, priority: int) -> None:
        super().__init__()
        self.priority: i16 = priority
        self.is_held = False  # all its jobs are in partitions that are at their limits
        self.parked: LinkedList[ReadyQueue] = LinkedList()  # of crews that consider it empty, held or paused
        self.partitions: Partitions | None = None  # of the function; None: all jobs are in this list
        self.cold: i64 = 0  # how many of its jobs are cold
        self.payloads: PayloadMemory | None = None  # reads their payloads; since there was the first of them
        self.is_reading = False  # payloads of its jobs are being read
        self.look_after: i64 = 0  # how many jobs will be taken before it is looked at which payloads to read next

    def put(self, job: LiveJob) -> None:
        """Insert a job in state queued."""
        if self.partitions is None:
            super().put(job)
        else:
            self.size += 1
            self.partitions.put(self, job)

    def take(self) -> LiveJob:
        """Remove and return the first job. The queue must be neither empty nor held."""
        if self.partitions is None:
            return super().take()
        self.size -= 1
        return self.partitions.take(self)

    def remove(self, job: LiveJob) -> None:
        """Remove a job that is cancelled or replaced. Its state is no longer queued."""
        if self.partitions is None:
            super().remove(job)
        else:
            self.size -= 1
            self.partitions.remove(self, job)

    def first(self) -> LiveJob | None:
        """Return the job that `take` would return."""
        return super().first() if self.partitions is None else self.partitions.first(self)

    def oldest_ready_at(self) -> float:
        """When the job that waits longest was ready to run; the queue must not be empty."""
        return super().oldest_ready_at() if self.partitions is None else self.partitions.oldest_ready_at(self)

    def __iter__(self) -> Iterator[LiveJob]:
        """The queued jobs in order."""
        return super().__iter__() if self.partitions is None else self.partitions.jobs(self)

    def __reversed__(self) -> Iterator[LiveJob]:
        """The queued jobs, the last one first."""
        return super().__reversed__() if self.partitions is None else reversed(list(self.partitions.jobs(self)))

    def is_waiting(self) -> bool:
        """Whether the next job is cold; then its payload is being read, and the queue is announced afterwards."""
        job = self.first()
        if job is None or not job.is_cold:
            return False
        if self.payloads is not None:
            self.payloads.read_ahead(self)
        return True

    def upcoming(self, most: int) -> list[LiveJob]:
        """The next jobs, up to so many, in the order in which they will be assigned; of held partitions, none."""
        return super().upcoming(most) if self.partitions is None else self.partitions.upcoming(self, most)

    @property
    def is_linked(self) -> bool:
        """Whether the first and the last few jobs are found at once."""
        return self.partitions is None and not self._early


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkedNode:
    """Base class of what a LinkedList holds; an object is in at most one list."""

    __slots__ = ("next", "previous")

    def __init__(self) -> None:
        self.previous: LinkedNode | None = None
        self.next: LinkedNode | None = None


N = TypeVar("N", bound=LinkedNode)


class LinkedList(Generic[N]):
    """An intrusive doubly linked list: appending and removing cost the same at any length."""

    __slots__ = ("first", "is_empty", "last")

    def __init__(self) -> None:
        self.is_empty = True  # cheaper to ask than `first is None`, of which compiled code checks the type
        self.first: N | None = None
        self.last: N | None = None

    def append(self, node: N) -> None:
        """Add a node at the end; it must not be in any list."""
        last = self.last
        if last is None:
            self.first = node
            self.is_empty = False
        else:
            last.next = node
            node.previous = last
        self.last = node

    def prepend(self, node: N) -> None:
        """Add a node at the beginning; it must not be in any list."""
        first = self.first
        if first is None:
            self.append(node)
        else:
            first.previous = node
            node.next = first
            self.first = node

    def rotate(self) -> None:
        """Move the first node to the end; the list must not be empty."""
        first, last = self.first, self.last
        assert first is not None
        assert last is not None
        following = first.next
        if following is not None:
            self.first = cast(N | None, following)
            following.previous = first.next = None
            first.previous, last.next = last, first
            self.last = first

    def remove(self, node: N) -> None:
        """Remove a node of this list."""
        previous, following = node.previous, node.next
        if previous is None:
            self.first = cast(N | None, following)
            self.is_empty = following is None
        else:
            previous.next = following
            node.previous = None
        if following is None:
            self.last = cast(N | None, previous)
        else:
            following.previous = previous
            node.next = None

    def __iter__(self) -> Iterator[N]:
        """The nodes in order; the current one may be removed while iterating."""
        node = self.first
        while node is not None:
            following = cast(N | None, node.next)
            yield node
            node = following
