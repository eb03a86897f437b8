"""Jobs by time: when scheduled jobs are due, when leases expire, and when jobs that nobody took do.

All are heaps from whose middle nothing is removed. An entry is current while its job has the state and the time that
the entry was made for; others are stale, and are dropped when they come to the top or when they outnumber the current
ones. So adding costs log n, cancelling costs nothing, and waiting costs nothing.

A job that is rescheduled to the very same time makes its old entry current again, beside the new one. Both mean the
same, and when one has been dealt with, the other is stale.
"""

import heapq
from collections.abc import Iterator
from typing import Final

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import BLOCKED, QUEUED, RUNNING, SCHEDULED

NEVER: Final = float("inf")
_SWEEP_FROM: Final = 64  # stale entries; rebuilding the heap for fewer is not worth it


@mypyc_attr(allow_interpreted_subclasses=True)
class DeadlineHeap:
    """The heap; its subclasses define which entries are current."""

    __slots__ = ("_entries", "_stale", "not_before")

    def __init__(self) -> None:
        self.not_before = NEVER  # no entry has an earlier time; saves most calls of `next_time`
        self._entries: list[tuple[float, int, LiveJob]] = []  # time, id, job
        self._stale = 0  # how many entries are known to be stale

    def __len__(self) -> int:
        return len(self._entries) - self._stale

    def is_current(self, when: float, job: LiveJob) -> bool:
        """Whether the entry still applies."""
        raise NotImplementedError

    def add(self, when: float, job: LiveJob) -> None:
        heapq.heappush(self._entries, (when, job.id, job))
        if when < self.not_before:
            self.not_before = when

    def count_stale(self) -> None:
        """An entry has become stale."""
        self._stale += 1
        if self._stale > len(self._entries) - self._stale + _SWEEP_FROM:
            self._entries = self._current_entries()
            heapq.heapify(self._entries)
            self._stale = 0

    def next_time(self) -> float:
        """Return the time of the first current entry, or NEVER."""
        entries = self._entries
        while entries:
            when, _, job = entries[0]
            if self.is_current(when, job):
                self.not_before = when
                return when
            heapq.heappop(entries)
            self._stale = max(self._stale - 1, 0)
        self.not_before = NEVER
        return NEVER

    def pop_due(self, now: float) -> LiveJob | None:
        """Remove and return a job whose time has come."""
        if self.next_time() > now:
            return None
        return heapq.heappop(self._entries)[2]

    def entries(self) -> Iterator[tuple[float, LiveJob]]:
        """Every current entry, in no order."""
        for when, _, job in self._entries:
            if self.is_current(when, job):
                yield when, job

    def soonest_first(self) -> Iterator[tuple[float, LiveJob]]:
        """Every current entry in order. Taking the first few is cheap: the heap is walked from its top."""
        entries = self._entries
        frontier = [(entries[0], 0)] if entries else []
        while frontier:
            (when, _, job), index = heapq.heappop(frontier)
            for child in range(2 * index + 1, min(2 * index + 3, len(entries))):
                heapq.heappush(frontier, (entries[child], child))
            if self.is_current(when, job):
                yield when, job

    def jobs(self) -> list[LiveJob]:
        """Every job, the soonest first."""
        return [entry[2] for entry in sorted(self._current_entries())]

    def _current_entries(self) -> list[tuple[float, int, LiveJob]]:
        """The current entries, one per job."""
        return list({entry[2]: entry for entry in self._entries if self.is_current(entry[0], entry[2])}.values())


@mypyc_attr(allow_interpreted_subclasses=True)
class ScheduledJobs(DeadlineHeap):
    """Jobs that wait for their `run_at`."""

    __slots__ = ()

    def is_current(self, when: float, job: LiveJob) -> bool:
        return job.state is SCHEDULED and job.run_at == when


class ExpiringJobs(DeadlineHeap):
    """Jobs that have an `expires_at`. The entry of one that was running is replaced when it waits again."""

    __slots__ = ()

    def is_current(self, when: float, job: LiveJob) -> bool:
        waits = job.state is QUEUED or job.state is SCHEDULED or job.state is BLOCKED
        return waits and job.expires_at == when


class Leases(DeadlineHeap):
    """Running jobs that have a deadline."""

    __slots__ = ()

    def is_current(self, when: float, job: LiveJob) -> bool:
        return job.state is RUNNING and job.deadline == when

    def shift(self, seconds: float) -> None:
        """Move every deadline, because the clock was moved."""
        entries: list[tuple[float, int, LiveJob]] = []
        for _, id, job in self._current_entries():
            job.deadline += seconds
            entries.append((job.deadline, id, job))
        heapq.heapify(entries)
        self._entries = entries
        self._stale = 0
        self.not_before = entries[0][0] if entries else NEVER
