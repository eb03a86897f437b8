"""Running a function for a job, and putting into words what came of it."""

import inspect
import traceback

from geartrain.client.job import Function, Job, Outcome, Result
from geartrain.errors import JobFailedError


def execute(function: Function, job: Job) -> Outcome:
    """Run a plain function."""
    try:
        result = function(job)
        if inspect.isawaitable(result):
            raise TypeError(f"the function {job.function!r} is async, and runs where only plain functions can")
        return succeeded(job, result)
    except Exception as error:
        return failed(error)


def succeeded(job: Job, result: Result | object) -> Outcome:
    """A function returned."""
    if job.delay is not None:
        return Outcome(delay=job.delay)
    if isinstance(result, bytes):
        return Outcome(result)
    if result is None:
        return Outcome()
    if isinstance(result, str):
        return Outcome(result.encode())
    if isinstance(result, bytearray | memoryview):
        return Outcome(bytes(result))
    raise TypeError(f"a function returns bytes, text or None; {job.function!r} returned {type(result).__name__}")


def failed(error: Exception) -> Outcome:
    """A function raised. A JobFailedError says itself what the client shall hear."""
    account = "".join(traceback.format_exception(error))
    if isinstance(error, JobFailedError):
        return Outcome(b"", error.reason or str(error), error.code, error.data, account=account)
    text = str(error)
    name = type(error).__name__
    return Outcome(b"", f"{name}: {text}" if text else name, account=account)
