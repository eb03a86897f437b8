"""What becomes of a job whose Periodic worker has not done it: it depends on the clients that wait for it.

Only the home of a job knows them. For a job that another server has borrowed, it decides when the link tells it.
"""

from typing import Final

from geartrain.doors.periodic.watcher import RunWatcher
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import periodic as wire

DOOR: Final = "periodic"


def fail(engine: Engine, worker: Worker, job: LiveJob, reason: str = "worker reported failure") -> None:
    """WORK_FAIL: retry the job later.

    As with the original server, a foreground job ends, and its clients get an answer. Only clients of the document
    wait on: they know no other answer than a result.
    """
    retry = job.background or job.id in engine.borrowed or _has_document_client(job)
    if retry:
        _answer_failed(engine, worker, job)
    engine.fail(worker, job, reason, retry=retry)


def reschedule(engine: Engine, worker: Worker, job: LiveJob, run_at: float, step: int) -> None:
    """SCHED_LATER: run the job again at that time.

    As with the original server, a foreground job for which only today's clients wait ends instead.
    """
    if not job.background and _has_only_today_s_clients(job):
        engine.fail(worker, job, "rescheduled by its worker")
    else:
        _answer_failed(engine, worker, job)
        engine.reschedule(worker, job, run_at, step)


def _answer_failed(engine: Engine, worker: Worker, job: LiveJob) -> None:
    """Before a job is retried or rescheduled: today's clients that wait for its result get `failed`.

    A broadcast job, which has no single owner, still runs elsewhere: its clients wait on.
    """
    if job.owner is not worker:
        return
    for watcher in list(job.watchers or ()):
        if isinstance(watcher, RunWatcher) and watcher.fails_on_retry():
            engine.unwatch(job, watcher)
            watcher.fail(job, "")


def _has_document_client(job: LiveJob) -> bool:
    """Whether a client of the document waits for the job."""
    watchers = [watcher for watcher in job.watchers or () if isinstance(watcher, RunWatcher)]
    return any(watcher.connection.dialect is wire.DOCUMENT for watcher in watchers)


def _has_only_today_s_clients(job: LiveJob) -> bool:
    """Whether clients wait for the job, all of them of today's dialect."""
    watchers = job.watchers or ()
    return bool(watchers) and all(
        isinstance(watcher, RunWatcher) and watcher.connection.dialect is wire.TODAY for watcher in watchers
    )
