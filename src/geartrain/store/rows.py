"""From a row back to a job, trusting nothing: files are damaged, edited by hand, and written by other versions."""

import sys
from typing import Any, Final

from geartrain.model import JobState, Priority, Record, unpack_attempts
from geartrain.store.contract import COLUMNS, J

_BYTES: Final = ("handle", "function", "unique_key", "payload", "reducer", "trials")
_INTEGERS: Final = ("id", "priority", "state", "attempts", "count", "keeps_result")
_NUMBERS: Final = ("run_at", "submitted_at", "timeout")
_TEXTS: Final = ("door", "reason")
_KINDS: Final[tuple[tuple[tuple[str, ...], Any, str], ...]] = (
    (_BYTES, bytes, "bytes"),
    (_INTEGERS, int, "a whole number"),
    (_NUMBERS, (int, float), "a number"),
    (_TEXTS, str, "text"),
)
_TYPES: Final[tuple[Any, ...]] = tuple(next(kind for names, kind, _ in _KINDS if column in names) for column in COLUMNS)
_LOWEST: Final = int(Priority.LOW)
_DEAD: Final = int(JobState.DEAD)
_STATES: Final = (int(JobState.QUEUED), int(JobState.SCHEDULED), int(JobState.RUNNING), _DEAD)


class BrokenRowError(Exception):
    """This row is no job; the text says why."""


def job(row: tuple[Any, ...], kind: type[J]) -> J:
    """The job that a row holds. A job that was running when the server stopped is queued again."""
    if not all(map(isinstance, row, _TYPES)):
        raise BrokenRowError(_complaint(row))
    (
        id, handle, function, unique, payload, priority, state, run_at, submitted_at,
        attempts, count, timeout, reducer, door, reason, trials, keeps_result,
    ) = row  # fmt: skip
    if not 0 <= priority <= _LOWEST:
        raise BrokenRowError(f"priority {priority} does not exist")
    if state not in _STATES:
        raise BrokenRowError(f"state {state} is not that of a job that waits")
    if id < 1 or not handle:
        raise BrokenRowError("it has no id or no handle")
    if run_at == submitted_at:
        run_at = submitted_at  # one object instead of two: it is so for nearly every job
    found = kind(id, handle, function, unique, payload, priority, True, run_at, submitted_at, sys.intern(door))
    if not keeps_result:
        found.keeps_result = False
    if state == _DEAD:
        found.state = JobState.DEAD
    if attempts or count or timeout or reducer or reason or trials:
        found.attempts, found.count, found.timeout = attempts, count, float(timeout)
        found.reducer, found.reason = reducer, reason
        found.failed_attempts = unpack_attempts(trials) or None
    return found


def record(row: tuple[Any, ...]) -> Record:
    """The record that a row holds, in the order of its fields; SQLite has no truth values, only numbers."""
    return Record._make((*row[:-1], bool(row[-1])))


def _complaint(row: tuple[Any, ...]) -> str:
    words = {column: word for names, _, word in _KINDS for column in names}
    for column, value, kind in zip(COLUMNS, row, _TYPES, strict=True):
        if not isinstance(value, kind):
            return f"{column} is {type(value).__name__}, not {words[column]}"
    return "unknown"
