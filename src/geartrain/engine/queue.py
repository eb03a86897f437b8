"""The waiting line of one function at one priority.

Jobs stand in the order of their `run_at`. Nearly always a new job is the latest, so it joins at the end of a line in
which each job knows its neighbours: joining, leaving and being taken cost the same whatever the length. A job
that belongs further ahead (a Periodic job whose time lies in the past) goes to a small heap beside the line, and the
two are merged when a job is taken.

Who leaves the heap other than at its top is only counted off; its place is swept when it comes to the top, or when
such places outnumber the jobs.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED

if TYPE_CHECKING:
    from geartrain.engine.crew import ReadyQueue


_SWEEP_FROM: Final = 64  # below this many void places sweeping is not worth it


class JobQueue:
    """First come, first served; `size` counts the jobs that wait."""

    __slots__ = ("_early", "_first", "_last", "_void", "size", "unaware")

    def __init__(self) -> None:
        self.size = 0
        self.unaware: LinkedList[ReadyQueue] = LinkedList()  # of crews that believe it empty, or paused
        self._first: LiveJob | None = None
        self._last: LiveJob | None = None
        self._early: list[LiveJob] | None = None  # made when first needed
        self._void = 0  # how many in it wait no longer

    def put(self, job: LiveJob) -> None:
        """Add a queued job at the place that its time gives it."""
        self.size += 1
        last = self._last
        if last is None:
            self._first = self._last = job
        elif job.run_at >= last.run_at:
            last.behind = job
            job.ahead = last
            self._last = job
        else:
            if self._early is None:
                self._early = []
            heapq.heappush(self._early, job)

    def take(self) -> LiveJob:
        """Remove and return the first job; there must be one (`size` > 0)."""
        self.size -= 1
        job = self._first
        early = self._earliest() if self._early else None
        if self._early and early is not None and (job is None or early < job):
            return heapq.heappop(self._early)
        assert job is not None
        behind = job.behind
        self._first = behind
        if behind is None:
            self._last = None
        else:
            behind.ahead = job.behind = None
        return job

    def first(self) -> LiveJob | None:
        """The job that `take` would give, left in its place."""
        job = self._first
        early = self._earliest() if self._early else None
        return early if job is None or (early is not None and early < job) else job

    def oldest_ready_at(self) -> float:
        """When the first job was ready to run; there must be one. A time before its submission is only a place."""
        early = self._earliest() if self._early else None
        return min(max(job.run_at, job.submitted_at) for job in (self._first, early) if job is not None)

    def leave(self, job: LiveJob) -> None:
        """A job that stood here is cancelled or replaced."""
        self.size -= 1
        ahead, behind = job.ahead, job.behind
        if ahead is None and self._first is not job:
            self._leave_early()
            return
        if ahead is None:
            self._first = behind
        else:
            ahead.behind = behind
        if behind is None:
            self._last = ahead
        else:
            behind.ahead = ahead
        job.ahead = job.behind = None

    def __iter__(self) -> Iterator[LiveJob]:
        """The waiting jobs in order."""
        jobs: Iterable[LiveJob] = self._line()
        if self._early:
            jobs = heapq.merge(jobs, sorted(self._early))
        for job in jobs:
            if job.state is QUEUED:
                yield job

    def _line(self) -> Iterator[LiveJob]:
        job = self._first
        while job is not None:
            behind = job.behind
            yield job
            job = behind

    def _earliest(self) -> LiveJob | None:
        """The first of those beside the line."""
        early = self._early
        while early:
            if early[0].state is QUEUED:
                return early[0]
            heapq.heappop(early)
            self._void -= 1
        return None

    def _leave_early(self) -> None:
        early = self._early
        assert early is not None
        self._void += 1
        if self._void > len(early) - self._void + _SWEEP_FROM:
            self._early = [job for job in early if job.state is QUEUED]
            heapq.heapify(self._early)
            self._void = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """Whoever can stand in a line."""

    __slots__ = ("ahead", "behind")

    def __init__(self) -> None:
        self.ahead: Node | None = None
        self.behind: Node | None = None


P = TypeVar("P", bound=Node)


class LinkedList(Generic[P]):
    """First come, first served."""

    __slots__ = ("first", "last")

    def __init__(self) -> None:
        self.first: P | None = None
        self.last: P | None = None

    def join(self, place: P) -> None:
        """Stand at the end; `place` must stand nowhere else."""
        last = self.last
        if last is None:
            self.first = place
        else:
            last.behind = place
            place.ahead = last
        self.last = place

    def leave(self, place: P) -> None:
        """Go away; `place` must stand in this line."""
        ahead, behind = place.ahead, place.behind
        if ahead is None:
            self.first = cast(P | None, behind)
        else:
            ahead.behind = behind
            place.ahead = None
        if behind is None:
            self.last = cast(P | None, ahead)
        else:
            behind.ahead = ahead
            place.behind = None

    def __iter__(self) -> Iterator[P]:
        """Everybody in order; whoever is asked may leave."""
        place = self.first
        while place is not None:
            following = cast(P | None, place.behind)
            yield place
            place = following
