"""Adds the jobs of another server's queue to a store that no server has open: all of them, or none."""

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from geartrain.maintenance.dump_writer import Progress
from geartrain.maintenance.queue_import.queued_job import QueuedJob
from geartrain.model import Job
from geartrain.server.config import settings as table
from geartrain.server.config.settings import Settings
from geartrain.store import loader
from geartrain.store.sqlite import SqliteStore

GEARMAN: Final = "gearman"
PERIODIC: Final = "periodic"
# Gearman's unique ID of jobs that are the same if their payloads are. gearmand has at most one of them per function.
_BY_PAYLOAD: Final = b"-"


class FunctionCount(NamedTuple):
    """How many jobs of a function a queue has, by priority."""

    function: bytes
    high: int
    normal: int
    low: int
    scheduled: int  # of them, not due yet


class ImportSummary(NamedTuple):
    """The result of an import."""

    jobs: int  # added
    present: int  # skipped: a job of the store has the same function and unique key


def count(jobs: Iterable[QueuedJob], now: float) -> list[FunctionCount]:
    """What a queue contains, by function.

    >>> from geartrain.model import Priority
    >>> count([QueuedJob(b"mail", b"", b"x"), QueuedJob(b"mail", b"", b"y", Priority.HIGH, run_at=9.0)], now=5.0)
    [FunctionCount(function=b'mail', high=1, normal=1, low=0, scheduled=1)]
    """
    counts: dict[bytes, list[int]] = {}
    for job in jobs:
        numbers = counts.setdefault(job.function, [0, 0, 0, 0])
        numbers[job.priority] += 1
        numbers[3] += job.run_at > now
    return [FunctionCount(function, *numbers) for function, numbers in sorted(counts.items())]


def add(store: SqliteStore, queue: list[QueuedJob], door: str, settings: Settings, progress: Progress) -> ImportSummary:
    """Add the jobs, as if they had come by this door. Handles are new; everything else stays."""
    prefix = table.handle_prefix(settings)
    now = time.time()
    summary = loader.add_jobs(store, lambda next_id: _jobs(queue, door, next_id, prefix, now), lambda _: None, progress)
    return ImportSummary(summary.jobs, summary.clashing)


def _jobs(queue: list[QueuedJob], door: str, next_id: int, prefix: bytes, now: float) -> Iterator[Job]:
    no_key = _BY_PAYLOAD if door == GEARMAN else b""
    for id, queued in enumerate(queue, start=next_id):
        key = queued.unique if queued.unique != no_key else b""
        job = Job(
            id, b"%b:%d" % (prefix, id), queued.function, key, queued.payload, queued.priority, True,
            queued.run_at or now, now, door,
        )  # fmt: skip
        job.timeout, job.count = queued.timeout, queued.steps
        yield job
