"""Run a function for a job, and turn what it returned or raised into an outcome."""

import inspect
import traceback
from typing import NamedTuple

from geartrain.client.job import Function, Job, Result
from geartrain.errors import JobFailedError


class JobOutcome(NamedTuple):
    """How a function ended; plain data, because it may come from another process."""

    result: bytes = b""
    failure: str | None = None  # why it failed, for people
    code: int = 1  # of the failure
    data: bytes = b""  # what the client receives of the failure, if not the text
    delay: float | None = None  # seconds after which the job shall run again
    traceback: str = ""  # of the failure


def execute(function: Function, job: Job) -> JobOutcome:
    """Run a plain function."""
    try:
        result = function(job)
        if inspect.isawaitable(result):
            raise TypeError(f"the function {job.function!r} is async, and runs where only plain functions can")
        return succeeded(job, result)
    except Exception as error:
        return failed(error)


def succeeded(job: Job, result: Result | object) -> JobOutcome:
    """The outcome of a function that returned this."""
    if job.delay is not None:
        return JobOutcome(delay=job.delay)
    if isinstance(result, bytes):
        return JobOutcome(result)
    if result is None:
        return JobOutcome()
    if isinstance(result, str):
        return JobOutcome(result.encode())
    if isinstance(result, bytearray | memoryview):
        return JobOutcome(bytes(result))
    raise TypeError(f"a function returns bytes, text or None; {job.function!r} returned {type(result).__name__}")


def failed(error: Exception) -> JobOutcome:
    """The outcome of a function that raised this. A JobFailedError says itself what the client receives."""
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, JobFailedError):
        return JobOutcome(b"", error.reason or str(error), error.code, error.data, traceback=trace)
    text = str(error)
    name = type(error).__name__
    return JobOutcome(b"", f"{name}: {text}" if text else name, traceback=trace)
