"""Limits and partitions of an app that runs in memory: which job is next, and when it may start.

The engine's rules for one worker that runs a job at a time: within a task and priority, partitions take turns. A job at
a limit waits, for the end of a running job or for the next start that a rate allows. Several jobs run only if a task
calls others and waits for them, or if a test runs some at the same time.
"""

import asyncio
import math
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar

from geartrain.app.call import Call
from geartrain.model import Priority

# The running jobs that wait for the code which asks, the innermost last.
_CALLERS: Final[ContextVar[tuple[Any, ...]]] = ContextVar("callers", default=())


class WaitingJob(Protocol):
    """What is asked of a job."""

    submission: Call[Any]
    due: float
    number: int


J = TypeVar("J", bound=WaitingJob)


class InMemoryLimits:
    """The jobs that run, whose turn it is, and what rates have allowed so far."""

    def __init__(self) -> None:
        self._running: list[WaitingJob] = []
        self._ends: list[asyncio.Event] = []  # to be set when a job ends
        self._turns: dict[tuple[str, Priority], list[bytes]] = {}  # partitions, by task and priority
        self._next_at: dict[tuple[str, bytes | None], float] = {}  # see `Rate`, by task and partition; None: all

    def choose(self, jobs: Iterable[J], now: float) -> J | None:
        """The next one of these jobs; None if none may start now."""
        ready = [job for job in jobs if job.due <= now and self.start_at(job) <= now]
        if not ready:
            return None
        first = min(ready, key=_order)
        group = (first.submission.task.name, first.submission.priority)
        same = [job for job in ready if (job.submission.task.name, job.submission.priority) == group]
        if not any(map(partition_of, same)):
            return first
        lanes: dict[bytes, list[J]] = {}
        for job in sorted(same, key=_order):
            lanes.setdefault(partition_of(job), []).append(job)
        ring = [partition for partition in self._turns.get(group, ()) if partition in lanes]
        ring += [partition for partition in lanes if partition not in ring]
        partition, *others = ring
        self._turns[group] = [*others, partition] if len(lanes[partition]) > 1 else others
        return lanes[partition][0]

    def start_at(self, job: WaitingJob) -> float:
        """When limits allow a job to start; infinity: not before another one ends."""
        limits, key = job.submission.task.limits, (job.submission.task.name, partition_of(job))
        if 0 < (limits.max_running or 0) <= len(self._running_of(job)):
            return math.inf
        if 0 < (limits.max_running_per_partition or 0) <= len(self._running_of(job, key[1])):
            return math.inf
        at = 0.0
        if limits.start_rate is not None:
            at = limits.start_rate.due_at(self._next_at.get((key[0], None), 0.0))
        if limits.partition_rate is not None:
            at = max(at, limits.partition_rate.due_at(self._next_at.get(key, 0.0)))
        return at

    def started(self, job: WaitingJob, now: float) -> None:
        """Count a job that starts."""
        limits, name = job.submission.task.limits, job.submission.task.name
        self._running.append(job)
        _CALLERS.set((*_CALLERS.get(), job))
        for rate, key in ((limits.start_rate, (name, None)), (limits.partition_rate, (name, partition_of(job)))):
            if rate is not None:
                self._next_at[key] = max(self._next_at.get(key, 0.0), now) + rate.interval

    def ended(self, job: WaitingJob) -> None:
        """A job does not run any more."""
        self._running.remove(job)
        _CALLERS.set(tuple(caller for caller in _CALLERS.get() if caller is not job))
        ends, self._ends = self._ends, []
        for end in ends:
            end.set()

    async def wait_for_end(self, job: WaitingJob) -> None:
        """Wait until a running job has ended; an AssertionError if all of them wait for this one."""
        callers = _CALLERS.get()
        if all(running in callers for running in self._running):
            raise AssertionError(f"{job!r} waits for the end of the task that waits for it: see its max_running")
        end = asyncio.Event()
        self._ends.append(end)
        await end.wait()

    def _running_of(self, job: WaitingJob, partition: bytes | None = None) -> Sequence[WaitingJob]:
        running = [other for other in self._running if other.submission.task.name == job.submission.task.name]
        return running if partition is None else [other for other in running if partition_of(other) == partition]


def partition_of(job: WaitingJob) -> bytes:
    """The partition of a job, which it may have from its unique key."""
    call = job.submission
    separator = (call.task.limits.partition_from_unique or "").encode()
    if call.partition or not separator:
        return call.partition
    end = call.unique.find(separator)
    return call.unique[:end] if end > 0 else b""


def _order(job: WaitingJob) -> tuple[Priority, float, int]:
    return job.submission.priority, job.due, job.number
