"""Job history from a store's file: finished jobs (records) and unfinished ones in one list.

It only reads; a server may have the file open and write to it.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from geartrain.engine.failed_jobs import GIVEN_UP
from geartrain.errors import StoreError
from geartrain.job_query import ENDED, JobQuery
from geartrain.job_query import StateName as StateName
from geartrain.model import Job, JobState, Record
from geartrain.store import contract
from geartrain.store.snapshot import Snapshot
from geartrain.store.sqlite import SqliteStore

_STATE_NAMES: Final = {
    int(JobState.DONE): StateName.DONE,
    int(JobState.FAILED): StateName.FAILED,
    int(JobState.CANCELLED): StateName.CANCELLED,
    int(JobState.EXPIRED): StateName.EXPIRED,
}
DEFAULT_LIMIT: Final = 50
_ALL_RECORDS: Final = 2**31
_RUNNING_UNKNOWN: Final = (
    "a store does not record which jobs are running; use --state queued, which here includes running jobs, or ask the "
    "server with --server"
)


class HistoryEntry(NamedTuple):
    """One job. What has not happened or is not known is 0 or empty."""

    id: int
    handle: bytes
    function: bytes
    unique: bytes
    state: StateName
    submitted_at: float
    run_at: float  # of an unfinished job: when it may run
    started_at: float  # of a finished job: its last attempt
    finished_at: float
    attempts: int
    door: str
    worker_door: str
    worker: bytes
    code: int  # 0 unless it failed
    reason: str
    result: bytes  # of a list: at least the beginning
    result_size: int = 0  # of the whole result
    result_kept: int = 0  # how many bytes of it the store has

    @property
    def moment(self) -> float:
        """The time by which entries are filtered and sorted."""
        return self.finished_at or self.submitted_at


def find(store: SqliteStore, handle: bytes, now: float, notice: Callable[[str], None]) -> list[HistoryEntry]:
    """The job with this handle, if the store has it. Rows that cannot be read are reported to `notice` and skipped."""
    with Snapshot(store.path) as snapshot:
        snapshot.require_known_layout()
        ended = [
            _of_record(record)._replace(result=store.kept_result(record))
            for record in store.records(contract.Query(handle=handle, limit=1))
            if record.state in _STATE_NAMES
        ]
        return ended or [_of_job(job, now) for job in snapshot.jobs(notice) if job.handle == handle]


def search(store: SqliteStore, query: JobQuery, now: float, notice: Callable[[str], None]) -> list[HistoryEntry]:
    """The jobs that match, newest first. Rows that cannot be read are reported to `notice` and skipped."""
    if query.state is JobState.RUNNING:
        raise StoreError(_RUNNING_UNKNOWN)
    limit = query.limit or DEFAULT_LIMIT
    # Jobs that have not ended come first: one that ends in between is then found twice instead of missed.
    with Snapshot(store.path) as snapshot:
        snapshot.require_known_layout()
        living = _living(snapshot, query, limit, now, notice) if query.state not in ENDED else []
    ended = _ended(store, query, limit) if query.state is None or query.state in ENDED else []
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


def _ended(store: SqliteStore, query: JobQuery, limit: int) -> list[HistoryEntry]:
    # A store cannot select by a group of reasons: all records are read then.
    records = store.records(_stored(query, _ALL_RECORDS if query.reason else limit))
    entries = (
        _of_record(record)
        for record in records
        if record.state in _STATE_NAMES and query.matches_reason(record.state, record.reason)
    )
    return list(itertools.islice(entries, limit))


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
        id=job.id,
        handle=job.handle,
        function=job.function,
        unique=job.unique,
        state=StateName[state.name],
        submitted_at=job.submitted_at,
        run_at=job.run_at,
        started_at=0.0,
        finished_at=0.0,
        attempts=job.attempts,
        door=job.door,
        worker_door="",
        worker=b"",
        code=code,
        reason=job.reason,
        result=b"",
    )


def _state(job: Job, now: float) -> JobState:
    """The state of a job that has not ended. A store notes only which jobs are dead; the rest follows from the time."""
    if job.state is JobState.DEAD:
        return JobState.DEAD
    return JobState.SCHEDULED if job.run_at > now else JobState.QUEUED


def _of_record(record: Record) -> HistoryEntry:
    return HistoryEntry(
        id=record.id,
        handle=record.handle,
        function=record.function,
        unique=record.unique,
        state=_STATE_NAMES[record.state],
        submitted_at=record.submitted_at,
        run_at=0.0,
        started_at=record.started_at,
        finished_at=record.finished_at,
        attempts=record.attempts,
        door=record.door,
        worker_door=record.worker_door,
        worker=record.worker,
        code=record.code,
        reason=record.reason,
        result=record.result,
        result_size=record.full_size,
        result_kept=record.kept_size,
    )
