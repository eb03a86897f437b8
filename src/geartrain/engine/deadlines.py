"""Jobs by time: when to queue them, or when to take them back.

A heap whose entries are never removed from the middle. An entry stands as long as its job is still in the
state and at the time that the entry names; what no longer stands is skipped when its time comes, or swept
when such entries outnumber the others. So adding costs log n, cancelling nothing, and waiting nothing at all.

A job that comes back for the very same time makes its old entry stand again beside the new one. They say the
same, so whichever comes first will do; the other has lost its meaning by then.
"""

import heapq
from collections.abc import Iterator
from typing import Final

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RUNNING, SCHEDULED

NEVER: Final = float("inf")
_SWEEP_FROM: Final = 64


@mypyc_attr(allow_interpreted_subclasses=True)
class DeadlineHeap:
    """The shared mechanism; the two subclasses say which entries stand."""

    __slots__ = ("_entries", "_void")

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, LiveJob]] = []
        self._void = 0  # entries known to stand no longer

    def __len__(self) -> int:
        return len(self._entries) - self._void

    def stands(self, when: float, job: LiveJob) -> bool:
        """Whether the entry still means something."""
        raise NotImplementedError

    def add(self, when: float, job: LiveJob) -> None:
        """`job` has to be dealt with at `when`."""
        heapq.heappush(self._entries, (when, job.id, job))

    def leave(self) -> None:
        """One entry has just lost its meaning."""
        self._void += 1
        if self._void > len(self._entries) - self._void + _SWEEP_FROM:
            self._entries = self._standing()
            heapq.heapify(self._entries)
            self._void = 0

    def next(self) -> float:
        """When the first entry that stands is due; NEVER if there is none."""
        entries = self._entries
        while entries:
            when, _, job = entries[0]
            if self.stands(when, job):
                return when
            heapq.heappop(entries)
            self._void = max(self._void - 1, 0)
        return NEVER

    def due(self, now: float) -> LiveJob | None:
        """Remove and return one job whose time has come."""
        if self.next() > now:
            return None
        return heapq.heappop(self._entries)[2]

    def standing(self) -> Iterator[tuple[float, LiveJob]]:
        """Every entry that stands, in no order."""
        for when, _, job in self._entries:
            if self.stands(when, job):
                yield when, job

    def soonest_first(self) -> Iterator[tuple[float, LiveJob]]:
        """The same in order, for who needs only the first few: the heap is walked from its top."""
        entries = self._entries
        frontier = [(entries[0], 0)] if entries else []
        while frontier:
            (when, _, job), place = heapq.heappop(frontier)
            for below in range(2 * place + 1, min(2 * place + 3, len(entries))):
                heapq.heappush(frontier, (entries[below], below))
            if self.stands(when, job):
                yield when, job

    def jobs(self) -> list[LiveJob]:
        """Every job on the agenda, soonest first."""
        return [entry[2] for entry in sorted(self._standing())]

    def _standing(self) -> list[tuple[float, int, LiveJob]]:
        """The entries that stand, one for each job."""
        return list({entry[2]: entry for entry in self._entries if self.stands(entry[0], entry[2])}.values())


@mypyc_attr(allow_interpreted_subclasses=True)
class ScheduledJobs(DeadlineHeap):
    """Jobs that wait for their time."""

    __slots__ = ()

    def stands(self, when: float, job: LiveJob) -> bool:
        return job.state is SCHEDULED and job.run_at == when


class Leases(DeadlineHeap):
    """Running jobs that must be finished by a time."""

    __slots__ = ()

    def stands(self, when: float, job: LiveJob) -> bool:
        return job.state is RUNNING and job.deadline == when
