"""What ran, when, and what came of it: a store's records, and its jobs that are not over, in one list.

It is read from the store's file beside a server that may be writing it, and changes nothing.
"""

import enum
import heapq
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from geartrain.engine.state import GIVEN_UP
from geartrain.errors import StoreError
from geartrain.job_query import ENDED, JobQuery
from geartrain.model import Job, JobState, Record
from geartrain.store import contract
from geartrain.store.snapshot import Snapshot
from geartrain.store.sqlite import SqliteStore


class StateName(enum.StrEnum):
    """The states of a job, in the words of people."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    QUEUED = "queued"
    RUNNING = "running"
    SCHEDULED = "scheduled"
    DEAD = "dead"


_ENDS: Final = {
    int(JobState.DONE): StateName.DONE,
    int(JobState.FAILED): StateName.FAILED,
    int(JobState.CANCELLED): StateName.CANCELLED,
}
DEFAULT_LIMIT: Final = 50
_NOT_NOTED: Final = (
    "a store does not note which of its jobs run at a moment, only when they come and how they end; "
    "ask for those in state queued, which wait or run"
)


class HistoryEntry(NamedTuple):
    """One job. What did not happen (yet), or is not known, is 0 or empty."""

    id: int
    handle: bytes
    function: bytes
    unique: bytes
    state: StateName
    submitted_at: float
    run_at: float  # of a job that is not over: when it may run
    started_at: float  # of a job that is over: its last attempt
    finished_at: float
    attempts: int
    door: str
    worker_door: str
    worker: bytes
    code: int  # 0 unless it failed
    reason: str
    result: bytes

    @property
    def moment(self) -> float:
        """The time by which it is found and sorted."""
        return self.finished_at or self.submitted_at


def find(store: SqliteStore, handle: bytes, now: float, notice: Callable[[str], None]) -> list[HistoryEntry]:
    """The job with this handle, if the store has it. What cannot be read is reported to `notice` and left out."""
    with Snapshot(store.path) as snapshot:
        snapshot.require_known_layout()
        ended = _ended(store, contract.Query(handle=handle, limit=1))
        return ended or [_of_job(job, now) for job in snapshot.jobs(notice) if job.handle == handle]


def search(store: SqliteStore, query: JobQuery, now: float, notice: Callable[[str], None]) -> list[HistoryEntry]:
    """The jobs that match, newest first. What cannot be read is reported to `notice` and left out."""
    if query.state is JobState.RUNNING:
        raise StoreError(_NOT_NOTED)
    limit = query.limit or DEFAULT_LIMIT
    # Jobs that have not ended come first: one that ends in between is then found twice instead of missed.
    with Snapshot(store.path) as snapshot:
        snapshot.require_known_layout()
        living = _living(snapshot, query, limit, now, notice) if query.state not in ENDED else []
    ended = _ended(store, _stored(query, limit)) if query.state is None or query.state in ENDED else []
    ended_ids = {entry.id for entry in ended}
    entries = [*ended, *(entry for entry in living if entry.id not in ended_ids)]
    return heapq.nlargest(limit, entries, key=_newest)


def _stored(query: JobQuery, limit: int) -> contract.Query:
    return contract.Query(
        function=query.function,
        state=-1 if query.state is None else int(query.state),
        since=query.since,
        until=query.until,
        limit=limit,
        search=query.search,
        door=query.door,
        below=query.below,
    )


def _ended(store: SqliteStore, query: contract.Query) -> list[HistoryEntry]:
    return [_of_record(record) for record in store.records(query) if record.state in _ENDS]


def _living(
    snapshot: Snapshot, query: JobQuery, limit: int, now: float, notice: Callable[[str], None]
) -> list[HistoryEntry]:
    def matching() -> Iterator[HistoryEntry]:
        for job in snapshot.jobs(notice):
            job.state = _state(job, now)
            if query.matches(job):
                yield _of_job(job, now)

    return heapq.nlargest(limit, matching(), key=_newest)


def _newest(entry: HistoryEntry) -> tuple[float, int]:
    return (entry.moment, entry.id)


def _of_job(job: Job, now: float) -> HistoryEntry:
    state = _state(job, now)
    code = GIVEN_UP if state is JobState.DEAD else 0
    return HistoryEntry(
        job.id, job.handle, job.function, job.unique, StateName[state.name], job.submitted_at, job.run_at, 0.0, 0.0,
        job.attempts, job.door, "", b"", code, job.reason, b"",
    )  # fmt: skip


def _state(job: Job, now: float) -> JobState:
    """The state of a job that has not ended. A store notes only which jobs are dead; the rest follows from the time."""
    if job.state is JobState.DEAD:
        return JobState.DEAD
    return JobState.SCHEDULED if job.run_at > now else JobState.QUEUED


def _of_record(record: Record) -> HistoryEntry:
    return HistoryEntry(
        record.id, record.handle, record.function, record.unique, _ENDS[record.state],
        record.submitted_at, 0.0, record.started_at, record.finished_at, record.attempts, record.door,
        record.worker_door, record.worker, record.code, record.reason, record.result,
    )  # fmt: skip
