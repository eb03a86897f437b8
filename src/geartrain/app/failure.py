"""What becomes of a job whose attempt failed: again later, dead, or failed.

A Geartrain server postpones the same job, or sets it aside as dead with the reason; handle, unique key and result stay
where they are. Other servers have no word for that. There, a background call is submitted again with a delay and the
number of its attempts, and the job that failed is completed; a call that somebody waits for is tried again by the
same worker, which holds its place meanwhile.
"""

import logging
from typing import Any, Final, NamedTuple

from geartrain.app import retry
from geartrain.app.envelope import Envelope
from geartrain.app.runner import Ending
from geartrain.app.task import Task
from geartrain.app.worker_job import WorkerJob
from geartrain.errors import AdminError, ClientError, JobFailedError

# Gearman counts in whole seconds, so a shorter delay could only become a longer one.
_SHORTEST: Final = 0.5

_log = logging.getLogger("geartrain.app")


class TryAgainHere(NamedTuple):
    """Wait, and make the next attempt in the same worker."""

    delay: float
    attempt: int  # that comes next


SETTLED: Final = None  # somebody else has the job now, or nobody needs an answer


async def judge(task: Task[Any, Any], job: WorkerJob, ending: Ending, attempt: int) -> TryAgainHere | None:
    """Decide, and do it. A JobFailedError is the answer for whoever waits.

    `attempt` is the one that failed as this worker counts; 0: the server knows.
    """
    assert ending.error is not None
    reason = retry.reason_of(ending.error)
    call = ending.running.call if ending.running is not None else None
    if not attempt and await job.can_be_steered():
        await _by_the_server(task, job, ending.error, call, reason)
        return SETTLED
    tried = attempt or (call.tried if call is not None else 0) + 1
    delay = task.terms.policy.delay_after(ending.error, tried)
    if delay is None:
        _given_up(job, ending.error, reason)
        raise JobFailedError(reason, reason)
    _again(job, tried, delay, reason)
    if call is None or call.wait or not job.steering.client.capabilities.run_at:
        return TryAgainHere(delay, tried + 1)
    await _submit_again(task, job, call, tried, delay)
    return SETTLED


async def _by_the_server(
    task: Task[Any, Any], job: WorkerJob, error: Exception, call: Envelope | None, reason: str
) -> None:
    policy = task.terms.policy
    if call is not None and call.wait and not policy.retries:
        _given_up(job, error, reason)
        raise JobFailedError(reason, reason)
    try:
        view = await job.view()
        tried = view["attempts"] + (call.tried if call is not None else 0)
        delay = policy.delay_after(error, tried)
        if delay is not None:
            _again(job, tried, delay, reason)
            await job.steering.ask("postpone", handle=view["handle"], seconds=delay, reason=reason)
        elif view["background"]:
            _given_up(job, error, reason)
            await job.steering.ask("bury", handle=view["handle"], reason=reason)
        else:
            _given_up(job, error, reason)
            raise JobFailedError(reason, reason)
    except JobFailedError:
        raise
    except (AdminError, ClientError, OSError) as trouble:
        if not isinstance(trouble, AdminError) or trouble.kind != "not-found":
            _log.warning("the server does not take back %s: %s", job.name, trouble)
            raise JobFailedError(reason, reason) from trouble
    job.release()  # the server has it now, or somebody has ended it meanwhile


async def _submit_again(task: Task[Any, Any], job: WorkerJob, call: Envelope, tried: int, delay: float) -> None:
    client = job.steering.client
    call.tried = tried
    # The key keeps a worker that is lost between the submission and the answer from submitting twice.
    key = f"{call.id}~{tried}" if call.id and client.capabilities.unique else ""
    payload = task.codec.encode(call)
    try:
        at = task.app.now() + delay if delay >= _SHORTEST else None
        await client.submit(task.function_name, payload, background=True, unique=key, at=at)
    except ClientError as error:
        _log.warning("%s cannot be submitted again: %s", job.name, error)
        raise JobFailedError(f"it cannot be tried again: {error}") from error


def _again(job: WorkerJob, tried: int, delay: float, reason: str) -> None:
    _log.info("%s failed, attempt %d; again in %.1f s: %s", job.name, tried, delay, reason)


def _given_up(job: WorkerJob, error: Exception, reason: str) -> None:
    # Where the payload is at fault, or the task decided it, the reason says it all.
    trace = None if isinstance(error, (retry.GiveUp, retry.Retry, *retry.HOPELESS)) else error
    _log.warning("%s is given up: %s", job.name, reason, exc_info=trace)
