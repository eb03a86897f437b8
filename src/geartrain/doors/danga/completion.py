"""What job_complete_res says of a job, from wherever it is known."""

from typing import Final

from geartrain.engine.job import LiveJob
from geartrain.engine.state import GENERAL_FAILURE, GIVEN_UP
from geartrain.model import JobState, Record
from geartrain.wire import danga as wire

_LAST_CODE: Final = 255
# A finished job reports at least this: 0 means that it is not finished.
_SHORTEST: Final = 1

# A job that was given up may have run on many workers; the number says no more than that it is over.
GIVEN_UP_PACKET: Final = wire.job_complete_res(_SHORTEST, GIVEN_UP)


def of_success(job: LiveJob, now: float, result: bytes) -> bytes:
    """A job that has just been done."""
    return wire.job_complete_res(_seconds(job.started_at, now), wire.SUCCESS, result)


def of_failure(job: LiveJob, now: float, words: bytes = b"") -> bytes:
    """A job that has just failed; `words` are its worker's own, if it had any."""
    return wire.job_complete_res(_seconds(job.started_at, now), _error_code(job.code), words)


def of_record(record: Record) -> bytes:
    """A job that ended some time ago."""
    code = wire.SUCCESS if record.state == JobState.DONE else _error_code(record.code)
    return wire.job_complete_res(_seconds(record.started_at, record.finished_at), code, record.result)


def _seconds(started_at: float, finished_at: float) -> int:
    """How long its last worker had it, in whole seconds; the clock may have been moved meanwhile."""
    return max(int(finished_at - started_at), _SHORTEST) if started_at else _SHORTEST


def _error_code(code: int) -> int:
    """Other protocols have failures without a code, or with codes that one byte cannot hold."""
    return code if 1 <= code <= _LAST_CODE else GENERAL_FAILURE
