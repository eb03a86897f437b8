"""What ran, when, and what came of it: a store's records, and its jobs that are not over, in one list.

It is read from the store's file beside a server that may be writing it, and changes nothing.
"""

import enum
import heapq
from collections.abc import Callable
from typing import Final, NamedTuple

from geartrain.engine.state import GIVEN_UP
from geartrain.errors import StoreError
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
_OVER: Final = frozenset(_ENDS.values())
_NOT_NOTED: Final = (
    "a store does not note which of its jobs run at a moment, only when they come and how they end; "
    "ask for those in state queued, which wait or run"
)


class HistoryFilter(NamedTuple):
    """Which jobs to give: those that fit everything that is set."""

    handle: bytes = b""
    function: bytes = b""
    state: StateName | None = None
    since: float = 0.0  # ended, or else were submitted, at or after
    until: float = 0.0  # the same, before; 0: up to now
    limit: int = 50


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


def find(store: SqliteStore, question: HistoryFilter, now: float, notice: Callable[[str], None]) -> list[HistoryEntry]:
    """The newest first. What cannot be read is told to `notice` and left out."""
    if question.state is StateName.RUNNING:
        raise StoreError(_NOT_NOTED)
    with Snapshot(store.path) as snapshot:
        snapshot.require_known_layout()
        if question.handle and (over := _over(store, question)):
            return over
        # First those that are not over: a job that ends in between is then found twice, and not missed.
        living = _living(snapshot, question, now, notice) if question.state not in _OVER else []
    over = _over(store, question)
    ended = {entry.id for entry in over}
    entries = [*over, *(entry for entry in living if entry.id not in ended)]
    return heapq.nlargest(question.limit, entries, key=_newest)


def _over(store: SqliteStore, question: HistoryFilter) -> list[HistoryEntry]:
    if question.state is not None and question.state not in _OVER:
        return []
    state = JobState[question.state.name] if question.state is not None else -1
    query = contract.Query(
        question.handle, question.function, int(state), question.since, question.until, question.limit
    )
    return [_of_record(record) for record in store.records(query) if record.state in _ENDS]


def _living(
    snapshot: Snapshot, question: HistoryFilter, now: float, notice: Callable[[str], None]
) -> list[HistoryEntry]:
    found = (_of_job(job, now) for job in snapshot.jobs(notice))
    return heapq.nlargest(question.limit, (entry for entry in found if _fits(entry, question)), key=_newest)


def _newest(entry: HistoryEntry) -> tuple[float, int]:
    return (entry.moment, entry.id)


def _fits(entry: HistoryEntry, question: HistoryFilter) -> bool:
    return (
        (not question.handle or entry.handle == question.handle)
        and (not question.function or entry.function == question.function)
        and (question.state is None or entry.state is question.state)
        and entry.moment >= question.since
        and (not question.until or entry.moment < question.until)
    )


def _of_job(job: Job, now: float) -> HistoryEntry:
    state = _state(job, now)
    code = GIVEN_UP if state is StateName.DEAD else 0
    return HistoryEntry(
        job.id, job.handle, job.function, job.unique, state, job.submitted_at, job.run_at, 0.0, 0.0,
        job.attempts, job.door, "", b"", code, job.reason, b"",
    )  # fmt: skip


def _state(job: Job, now: float) -> StateName:
    """Whether a job that lives waits for a time or for a worker, only its time and the clock can say."""
    if job.state is JobState.DEAD:
        return StateName.DEAD
    return StateName.SCHEDULED if job.run_at > now else StateName.QUEUED


def _of_record(record: Record) -> HistoryEntry:
    return HistoryEntry(
        record.id, record.handle, record.function, record.unique, _ENDS[record.state],
        record.submitted_at, 0.0, record.started_at, record.finished_at, record.attempts, record.door,
        record.worker_door, record.worker, record.code, record.reason, record.result,
    )  # fmt: skip
