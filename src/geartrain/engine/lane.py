"""The waiting line of one function at one priority.

Jobs stand in the order of their `run_at`. Nearly always a new job is the latest, so the line is a plain deque
and both ends cost the same whatever its length. A job that belongs further ahead (a Periodic job whose time
lies in the past) goes to a small heap beside it, and the two are merged when a job is taken.

A job that leaves the line other than at its head (cancelled, replaced) is only counted off; its place is
swept when it reaches the head, or when such places outnumber the jobs.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from geartrain.engine.agenda import NEVER
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED

_SWEEP_FROM: Final = 64  # below this many left places sweeping is not worth it


class Lane:
    """First come, first served; `size` counts the jobs that still wait."""

    __slots__ = ("_early", "_line", "size")

    def __init__(self) -> None:
        self.size = 0
        # Both are made when first needed: an empty deque takes 600 bytes, and a function has three lanes.
        self._line: deque[LiveJob] | None = None
        self._early: list[LiveJob] | None = None

    def put(self, job: LiveJob) -> None:
        """Add a queued job at the place that its time gives it."""
        self.size += 1
        line = self._line
        if line is None:
            line = self._line = deque()
        if not line or job.run_at >= line[-1].run_at:
            line.append(job)
            return
        if self._early is None:
            self._early = []
        heapq.heappush(self._early, job)

    def take(self) -> LiveJob:
        """Remove and return the first job; there must be one (`size` > 0)."""
        self.size -= 1
        if self._early:
            return self._take_merged()
        assert self._line is not None
        while True:
            job = self._line.popleft()
            if job.state is QUEUED:
                return job

    def first(self) -> LiveJob | None:
        """The job that `take` would give, left in its place."""
        if not self.size:
            return None
        return next(iter(self))

    def oldest(self) -> float:
        """When the first job was ready to run; there must be one. A time before its submission is only a place."""
        line, early = self._line, self._early
        while line and line[0].state is not QUEUED:
            line.popleft()
        while early and early[0].state is not QUEUED:
            heapq.heappop(early)
        ready = max(line[0].run_at, line[0].submitted_at) if line else NEVER
        return min(ready, max(early[0].run_at, early[0].submitted_at)) if early else ready

    def leave(self) -> None:
        """One queued job has just been cancelled or replaced: its place is void."""
        self.size -= 1
        places = (len(self._line) if self._line else 0) + (len(self._early) if self._early else 0)
        if places - self.size > self.size + _SWEEP_FROM:
            self._sweep()

    def __iter__(self) -> Iterator[LiveJob]:
        """The waiting jobs in order."""
        line: Iterable[LiveJob] = self._line or ()
        if self._early:
            line = heapq.merge(line, sorted(self._early))
        for job in line:
            if job.state is QUEUED:
                yield job

    def _take_merged(self) -> LiveJob:
        early, line = self._early, self._line
        assert early is not None
        while True:
            from_line = line and (not early or line[0] < early[0])
            job = line.popleft() if line and from_line else heapq.heappop(early)
            if job.state is QUEUED:
                return job

    def _sweep(self) -> None:
        if self._line is not None:
            self._line = deque([job for job in self._line if job.state is QUEUED])
        if self._early is not None:
            self._early = [job for job in self._early if job.state is QUEUED]
            heapq.heapify(self._early)
