"""One log line for each attempt at a task: how it ended, when it started and how long it took."""

import datetime
import logging
import time
from types import TracebackType
from typing import Any, Final

from geartrain.app import retry
from geartrain.app.runner import AttemptResult
from geartrain.app.task import Task
from geartrain.app.worker_job import WorkerJob

_log: Final = logging.getLogger("geartrain.app")


def started(task: Task[Any, Any], job: WorkerJob) -> None:
    """For people who look for a task that does not end."""
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("task started: %s, job %s", task.name, _handle(job))


def done(task: Task[Any, Any], job: WorkerJob, attempt: AttemptResult) -> None:
    """The attempt was the last one, because it succeeded."""
    if _log.isEnabledFor(logging.INFO):  # looking costs less than making a line that nobody sees
        _log.info("task done: %s", _description(task, job, attempt), extra=_fields(task, job, attempt))


def retrying(task: Task[Any, Any], job: WorkerJob, attempt: AttemptResult, delay: float, reason: str) -> None:
    """The attempt failed, and another one follows."""
    description, fields = _description(task, job, attempt), _fields(task, job, attempt, reason)
    _log.info("task failed, retrying: %s; next attempt in %.1f s: %s", description, delay, reason, extra=fields)


def gave_up(task: Task[Any, Any], job: WorkerJob, attempt: AttemptResult, reason: str) -> None:
    """The attempt failed, and no other follows."""
    description, fields = _description(task, job, attempt), _fields(task, job, attempt, reason)
    trace = _exception(attempt.error)
    _log.warning("task failed, no attempts left: %s: %s", description, reason, exc_info=trace, extra=fields)


def _description(task: Task[Any, Any], job: WorkerJob, attempt: AttemptResult) -> str:
    number, id, seconds = _facts(job, attempt)
    started = datetime.datetime.fromtimestamp(attempt.started_at).strftime("%H:%M:%S.%f")[:-3]
    took = f"attempt {number}, started {started}, took {seconds:.3f} s"
    return f"{task.name}, {took}, id {id or '-'}, job {_handle(job)}"


def _fields(task: Task[Any, Any], job: WorkerJob, attempt: AttemptResult, reason: str = "") -> dict[str, Any]:
    """The same for a log in JSON."""
    number, id, seconds = _facts(job, attempt)
    fields = {
        "task": task.name, "attempt": number, "started_at": attempt.started_at, "seconds": round(seconds, 6), "id": id,
        "job": _handle(job),
    }  # fmt: skip
    return {"fields": {**fields, "reason": reason} if reason else fields}


def _facts(job: WorkerJob, attempt: AttemptResult) -> tuple[int, str, float]:
    """The number of the attempt, the id of the call, and the seconds that it took."""
    running = attempt.running
    number, id = (running.attempt, running.id) if running is not None else (job.attempt, "")
    return number, id, max(time.time() - attempt.started_at, 0.0)


def _handle(job: WorkerJob) -> str:
    return job.handle.decode("utf-8", "replace") or "-"


def _exception(
    error: Exception | None,
) -> tuple[type[BaseException], BaseException, TracebackType | None] | None:
    """The error with the frames of the task's own code; None where the reason is enough.

    That is where the payload is wrong, or the task itself decided to give up.
    """
    if error is None or isinstance(error, (retry.GiveUp, retry.Retry, *retry.NOT_RETRIED)):
        return None
    return type(error), error, retry.own_frames(error)
