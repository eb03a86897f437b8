"""From a row back to a job, trusting nothing: files are damaged, edited by hand, and written by other versions."""

from typing import Any, Final

from geartrain.model import Job, JobState, Priority
from geartrain.store.contract import COLUMNS

_BYTES: Final = ("handle", "function", "unique_key", "payload", "reducer")
_INTEGERS: Final = ("id", "priority", "state", "attempts", "count")
_NUMBERS: Final = ("run_at", "submitted_at", "timeout")
_TEXTS: Final = ("door", "reason")
_KINDS: Final[tuple[tuple[tuple[str, ...], Any, str], ...]] = (
    (_BYTES, bytes, "bytes"),
    (_INTEGERS, int, "a whole number"),
    (_NUMBERS, (int, float), "a number"),
    (_TEXTS, str, "text"),
)
_TYPES: Final[tuple[Any, ...]] = tuple(
    next(kind for names, kind, _ in _KINDS if column in names) for column in COLUMNS
)
_WAITING: Final = (int(JobState.QUEUED), int(JobState.SCHEDULED), int(JobState.RUNNING))


class BrokenRowError(Exception):
    """This row is no job; the text says why."""


def job(row: tuple[Any, ...]) -> Job:
    """The job that a row holds. A job that was running when the server stopped is queued again."""
    if not all(map(isinstance, row, _TYPES)):
        raise BrokenRowError(_complaint(row))
    (
        id, handle, function, unique, payload, priority, state, run_at, submitted_at,
        attempts, count, timeout, reducer, door, reason,
    ) = row  # fmt: skip
    if not 0 <= priority <= Priority.LOW:
        raise BrokenRowError(f"priority {priority} does not exist")
    if state not in _WAITING and state != JobState.DEAD:
        raise BrokenRowError(f"state {state} is not that of a job that waits")
    if id < 1 or not handle:
        raise BrokenRowError("it has no id or no handle")
    found = Job(id, handle, function, unique, payload, priority, True, float(run_at), float(submitted_at), door)
    found.state = JobState.DEAD if state == JobState.DEAD else JobState.QUEUED
    found.attempts, found.count, found.timeout = attempts, count, float(timeout)
    found.reducer, found.reason = reducer, reason
    return found


def _complaint(row: tuple[Any, ...]) -> str:
    words = {column: word for names, _, word in _KINDS for column in names}
    for column, value, kind in zip(COLUMNS, row, _TYPES, strict=True):
        if not isinstance(value, kind):
            return f"{column} is {type(value).__name__}, not {words[column]}"
    return "unknown"
