"""Conversion of stored rows to jobs and records.

Nothing in a row is trusted: files are damaged, edited by hand, and written by other versions.
"""

import sys
from typing import Any, Final

from geartrain.model import JobState, Priority, Record, unpack_attempts, unpack_parents
from geartrain.store.contract import COLUMNS, RECORD_COLUMNS, J

_BYTES: Final = ("handle", "function", "unique_key", "payload", "reducer", "trials", "partition_name", "after_jobs")
_INTEGERS: Final = ("id", "priority", "state", "attempts", "count", "keeps_result")
_NUMBERS: Final = ("run_at", "submitted_at", "timeout", "keep_for", "expires_at")
_TEXTS: Final = ("door", "reason", "user_name")
_KINDS: Final[tuple[tuple[tuple[str, ...], Any, str], ...]] = (
    (_BYTES, bytes, "bytes"),
    (_INTEGERS, int, "an integer"),
    (_NUMBERS, (int, float), "a number"),
    (_TEXTS, str, "text"),
)
_TYPES: Final[tuple[Any, ...]] = tuple(next(kind for names, kind, _ in _KINDS if column in names) for column in COLUMNS)
_KEEPS_RESULT: Final = RECORD_COLUMNS.index("keeps_result")
_LOWEST: Final = int(Priority.LOW)
_DEAD: Final = int(JobState.DEAD)
_BAD_ENDS: Final = (int(JobState.FAILED), int(JobState.CANCELLED), int(JobState.EXPIRED))
_STATES: Final = (
    int(JobState.QUEUED),
    int(JobState.SCHEDULED),
    int(JobState.RUNNING),
    int(JobState.RESERVING),
    int(JobState.BLOCKED),
    _DEAD,
)


class BrokenRowError(Exception):
    """A row is not a valid job or record; the text says why."""


def job(row: tuple[Any, ...], kind: type[J], payload_size: int | None = None) -> J:
    """Create a job from a row. A job that was running when the server stopped is queued.

    With a `payload_size`, the row has no payload, and the job is cold.

    >>> from geartrain.model import Job
    >>> from geartrain.store import contract
    >>> running = Job(7, b"H:host:7", b"resize", b"", b"cat.png", 1, True, 5.0, 5.0, "gearman")
    >>> running.state = JobState.RUNNING
    >>> job(contract.row(running), Job).state.name
    'QUEUED'
    """
    if not all(map(isinstance, row, _TYPES)):
        raise BrokenRowError(_wrong_type(row))
    (
        id, handle, function, unique, payload, priority, state, run_at, submitted_at,
        attempts, count, timeout, reducer, door, reason, failed_attempts, keeps_result, keep_for,
        expires_at, user, partition, after,
    ) = row  # fmt: skip
    if not 0 <= priority <= _LOWEST:
        raise BrokenRowError(f"invalid priority {priority}")
    if state not in _STATES:
        raise BrokenRowError(f"invalid state {state}")
    if id < 1 or not handle:
        raise BrokenRowError("invalid id or empty handle")
    if run_at == submitted_at:
        run_at = submitted_at  # share one float object, as nearly every job can
    restored = kind(id, handle, function, unique, payload, priority, True, run_at, submitted_at, sys.intern(door))
    if payload_size is not None:
        restored.leave_payload(payload_size)
    if not keeps_result:
        restored.keeps_result = False
    if keep_for:
        restored.keep_for = float(keep_for)
    if expires_at:
        restored.expires_at = float(expires_at)
    if user:
        restored.user = sys.intern(user)
    if partition:
        restored.partition = partition
    if after:
        try:
            unpack_parents(after)
        except ValueError as error:
            raise BrokenRowError(str(error)) from None
        restored.after = after
    if state == _DEAD:
        restored.state = JobState.DEAD
    if attempts or count or timeout or reducer or reason or failed_attempts:
        restored.attempts, restored.count, restored.timeout = attempts, count, float(timeout)
        restored.reducer, restored.reason = reducer, reason
        restored.failed_attempts = unpack_attempts(failed_attempts) or None
    return restored


def failed_job(row: tuple[Any, ...], kind: type[J]) -> J:
    """Create a job that ended badly and was kept whole."""
    state = COLUMNS.index("state")
    if row[state] not in _BAD_ENDS:
        raise BrokenRowError(f"invalid state {row[state]}")
    failed = job((*row[:state], int(JobState.QUEUED), *row[state + 1 :]), kind)
    failed.state = JobState(row[state])
    return failed


def record(row: tuple[Any, ...]) -> Record:
    """Create a record from a row with RECORD_COLUMNS. SQLite has no booleans, only integers."""
    return Record._make((*row[:_KEEPS_RESULT], bool(row[_KEEPS_RESULT]), *row[_KEEPS_RESULT + 1 :]))


def _wrong_type(row: tuple[Any, ...]) -> str:
    words = {column: word for names, _, word in _KINDS for column in names}
    for column, value, kind in zip(COLUMNS, row, _TYPES, strict=True):
        if not isinstance(value, kind):
            return f"{column} is {type(value).__name__}, not {words[column]}"
    return "unknown"
