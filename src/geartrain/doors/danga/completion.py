"""The job_complete_res of a job that ends, or of one that has ended."""

from typing import Final

from geartrain.engine.failed_jobs import GENERAL_FAILURE, GIVEN_UP
from geartrain.engine.job import LiveJob
from geartrain.model import JobState, Record
from geartrain.wire import danga as wire

_LAST_CODE: Final = 255
# Seconds. A finished job reports at least this, since 0 means that it is not finished.
_SHORTEST: Final = 1

# A dead job may have run on many workers, so the time only says that it has ended.
GIVEN_UP_PACKET: Final = wire.job_complete_res(_SHORTEST, GIVEN_UP)


def of_success(job: LiveJob, now: float, result: bytes) -> bytes:
    """Of a job that is completed now."""
    return wire.job_complete_res(_seconds(job.started_at, now), wire.SUCCESS, result)


def of_failure(job: LiveJob, now: float, data: bytes = b"") -> bytes:
    """Of a job that fails now, with the data of its worker."""
    return wire.job_complete_res(_seconds(job.started_at, now), _error_code(job.code), data)


def of_record(record: Record, result: bytes) -> bytes:
    """Of a job that ended before, with what is kept of its result.

    A part of a result must not pass for the whole: it is replaced by an error.
    """
    code = wire.SUCCESS if record.state == JobState.DONE else _error_code(record.code)
    if len(result) < record.full_size:
        code = wire.RESULT_CUT
        result = b"%b: %d of %d bytes are kept" % (wire.RESULT_CUT_TEXT, len(result), record.full_size)
    return wire.job_complete_res(_seconds(record.started_at, record.finished_at), code, result)


def _seconds(started_at: float, finished_at: float) -> int:
    """How long its last worker ran it, in whole seconds; the clock may have been set meanwhile."""
    return max(int(finished_at - started_at), _SHORTEST) if started_at else _SHORTEST


def _error_code(code: int) -> int:
    """Workers of other protocols fail without a code, or with one that does not fit into a byte."""
    return code if 1 <= code <= _LAST_CODE else GENERAL_FAILURE
