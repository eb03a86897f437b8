"""Failed attempts: retry the job later, mark it dead, or fail it.

A Geartrain server postpones the same job, or marks it dead with the reason; handle, unique key and clients stay. Other
servers cannot do that. There, a background call is submitted again with a delay and the number of its attempts, and
the failed job is completed; a call whose client waits is retried by the same worker, which is busy meanwhile.
"""

import logging
from typing import Any, Final, NamedTuple

from geartrain.app import retry, run_log
from geartrain.app.envelope import Envelope
from geartrain.app.runner import AttemptResult
from geartrain.app.task import Task
from geartrain.app.worker_job import WorkerJob
from geartrain.errors import AdminError, ClientError, JobFailedError

# Gearman delays jobs by whole seconds; a shorter delay would be rounded up.
_SHORTEST_DELAY: Final = 0.5
# Where a server does not run a job again that its worker reports as failed.
_FAIL_FOR_GOOD: Final = frozenset({"gearman", "danga", "gearmonkey", "http"})

_log = logging.getLogger("geartrain.app")


class RetryHere(NamedTuple):
    """Wait, and make the next attempt in the same worker."""

    delay: float
    attempt: int  # the number of the next attempt


async def handle_failure(task: Task[Any, Any], job: WorkerJob, failed: AttemptResult, attempt: int) -> RetryHere | None:
    """Decide what to do after a failed attempt, and do it. JobFailedError is the answer to the client.

    `attempt` is the number of the failed attempt as this worker counts; 0: ask the server. None: the server, or a
    new job, continues.
    """
    assert failed.error is not None
    reason = retry.reason_of(failed.error)
    envelope = failed.envelope
    if not attempt and await job.is_controllable():
        await _retry_on_server(task, job, failed, envelope, reason)
        return None
    attempts = attempt or (envelope.tried if envelope is not None else 0) + 1
    delay = task.retry_policy.delay_after(failed.error, attempts)
    if delay is None:
        run_log.gave_up(task, job, failed, reason)
        raise JobFailedError(reason, reason)
    run_log.retrying(task, job, failed, delay, reason)
    if envelope is None or envelope.wait or not job.control.client.capabilities.run_at:
        return RetryHere(delay, attempts + 1)
    await _resubmit(task, job, envelope, attempts, delay)
    return None


async def _retry_on_server(
    task: Task[Any, Any], job: WorkerJob, failed: AttemptResult, envelope: Envelope | None, reason: str
) -> None:
    policy, error = task.retry_policy, failed.error
    assert error is not None
    kept = retry.traceback_of(error) or reason  # by the server, for people
    if envelope is not None and envelope.wait and not policy.retries:
        run_log.gave_up(task, job, failed, reason)
        raise JobFailedError(reason, reason)
    try:
        view = await job.view()
        attempts = view["attempts"] + (envelope.tried if envelope is not None else 0)
        delay = policy.delay_after(error, attempts)
        if delay is not None:
            run_log.retrying(task, job, failed, delay, reason)
            await job.control.ask("postpone", handle=view["handle"], seconds=delay, reason=kept)
        elif view["background"] and not _ends_as_failed(job, envelope):
            run_log.gave_up(task, job, failed, reason)
            await job.control.ask("bury", handle=view["handle"], reason=kept)
        else:
            run_log.gave_up(task, job, failed, reason)
            raise JobFailedError(reason, kept if view["background"] else reason)
    except JobFailedError:
        raise
    except (AdminError, ClientError, OSError) as refusal:
        if not isinstance(refusal, AdminError) or refusal.kind != "not-found":
            _log.warning("cannot hand job back to server: %s: %s", job.reference, refusal)
            raise JobFailedError(reason, reason) from refusal
    job.release()  # the server has it, or it was cancelled meanwhile


def _ends_as_failed(job: WorkerJob, envelope: Envelope | None) -> bool:
    """Whether a job ends, instead of waiting as a dead one for an operator: others of its workflow wait for its end.

    Not with a protocol whose workers cannot say that a job failed for good.
    """
    return envelope is not None and envelope.place is not None and job.control.client.protocol in _FAIL_FOR_GOOD


async def _resubmit(task: Task[Any, Any], job: WorkerJob, envelope: Envelope, attempts: int, delay: float) -> None:
    client = job.control.client
    envelope.tried = attempts
    # If the worker is lost between this submission and the answer, the unique key prevents a second submission.
    key = f"{envelope.id}~{attempts}" if envelope.id and client.capabilities.unique else ""
    payload = task.codec.encode(envelope)
    try:
        at = task.app.now() + delay if delay >= _SHORTEST_DELAY else None
        await client.submit(task.function_name, payload, background=True, unique=key, at=at)
    except ClientError as error:
        _log.warning("cannot resubmit job: %s: %s", job.reference, error)
        raise JobFailedError(f"cannot be retried: {error}") from error
