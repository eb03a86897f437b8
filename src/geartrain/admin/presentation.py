"""Views of functions, workers, jobs and records: how `views.py` shows what the engine and the store have."""

from itertools import islice
from typing import Final

from geartrain import jsonbytes
from geartrain.admin import waiting, workflow_graph
from geartrain.admin.borrowed_jobs import NONE, BorrowedCounts
from geartrain.admin.running_limits import engine_limits
from geartrain.admin.views import (
    PRIORITIES,
    STATES,
    AttemptView,
    FunctionOptions,
    FunctionView,
    JobView,
    RunningLimits,
    WorkerView,
)
from geartrain.engine.engine import Engine
from geartrain.engine.failed_jobs import GIVEN_UP
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.names import WORKFLOW
from geartrain.engine.policy import FunctionPolicy
from geartrain.engine.worker import Worker
from geartrain.model import Attempt, FailedPayload, FailureAction, JobState, Record, unpack_attempts

_NAMES_SHOWN: Final = 100


def function_view(
    engine: Engine, function: Function, limits: tuple[RunningLimits, list[str]], borrowed: BorrowedCounts = NONE
) -> FunctionView:
    """A function, without the jobs that are borrowed, and without workers of other servers."""
    partitions = function.partitions
    return FunctionView(
        name=jsonbytes.encode(function.name),
        queued=function.queued - borrowed.queued,
        running=function.running - borrowed.running,
        scheduled=function.scheduled,
        blocked=function.blocked,
        dead=engine.dead_counts.get(function.name, 0),
        workers=function.workers - function.distant_workers,
        paused=function.paused,
        limits=function.limits,
        oldest=function.oldest_ready_at() or None,
        submitted=function.submitted,
        completed=function.completed,
        failed=function.failed,
        settings=function_options(engine.function_policies.get(function.name)),
        running_limits=limits[0],
        limits_set=limits[1],
        partitions=0 if partitions is None else len(partitions.by_name),
        waits_for=waiting.of_function(engine, function) if function.queued else "",
    )


def function_options(policy: FunctionPolicy | None) -> FunctionOptions:
    """The settings of a function."""
    if policy is None:
        return FunctionOptions()
    failures = None if policy.failures is None else str(policy.failures.value)
    return FunctionOptions(failures, policy.keep_for, policy.keep_failed_for, policy.max_run)


def function_policy(options: FunctionOptions, limits: RunningLimits) -> FunctionPolicy:
    """The same as the engine has them, with the limits of its running jobs."""
    failures = None if options.failures is None else FailureAction(options.failures)
    return FunctionPolicy(failures, options.keep_for, options.keep_failed_for, options.max_run, engine_limits(limits))


def worker_view(worker: Worker) -> WorkerView:
    """A worker."""
    jobs = worker.running.jobs()
    return WorkerView(
        id=worker.number,
        name=jsonbytes.encode(worker.name),
        door=worker.door,
        peer=worker.peer,
        since=worker.since,
        functions=[jsonbytes.encode(name) for name in islice(worker.abilities, _NAMES_SHOWN)],
        function_count=len(worker.abilities),
        idle=worker.idle,
        running=[jsonbytes.encode(job.handle) for job in jobs[:_NAMES_SHOWN]],
        running_since=min((job.started_at for job in jobs), default=None),
    )


def job_view(
    job: LiveJob,
    longest: int,
    result: bytes | None = None,
    finished_at: float | None = None,
    engine: Engine | None = None,
    cold_payload: bytes | None = None,
) -> JobView:
    """A job that has not ended, or that has just ended with this result; with the engine, what it waits for.

    `cold_payload` is that of a cold job, or its beginning, if it was read.
    """
    owner, progress = job.owner, job.progress
    payload = cold_payload if job.is_cold else job.payload_in_memory
    if job.state is JobState.DEAD and job.failed_attempts:
        finished_at = job.failed_attempts[-1].ended_at
    workflow, members = _workflow(job.function, payload or b"")
    if members and job.parents_left:
        progress = Progress(members - job.parents_left, members)
    return JobView(
        id=job.id,
        handle=jsonbytes.encode(job.handle),
        function=jsonbytes.encode(job.function),
        unique=jsonbytes.encode(job.unique),
        state=STATES[job.state],
        priority=PRIORITIES[job.priority],
        background=job.background,
        door=job.door,
        submitted_at=job.submitted_at,
        run_at=job.run_at,
        started_at=job.started_at or None,
        finished_at=finished_at,
        attempts=job.attempts,
        timeout=job.timeout,
        worker=jsonbytes.encode(owner.name) if owner is not None else "",
        worker_door=owner.door if owner is not None else "",
        numerator=progress.numerator if progress is not None else None,
        denominator=progress.denominator if progress is not None else None,
        code=job.code or (GIVEN_UP if job.state is JobState.DEAD else 0),
        reason=job.reason,
        payload=None if payload is None else jsonbytes.encode(payload, longest),
        payload_size=job.payload_size,
        result=None if result is None else jsonbytes.encode(result, longest),
        result_size=None if result is None else len(result),
        trials=_attempt_views(job.failed_attempts or []),
        expires_at=job.expires_at or None,
        user=job.user,
        partition=jsonbytes.encode(job.partition),
        waits_for="" if engine is None else waiting.reason(engine, job),
        after=[] if engine is None else _parents(engine, job),
        workflow=workflow,
    )


def _workflow(function: bytes, graph: bytes) -> tuple[str | None, int]:
    """The name of a workflow and the number of its jobs; None and 0 for an ordinary job."""
    return workflow_graph.beginning(graph) if function == WORKFLOW else (None, 0)


def _parents(engine: Engine, job: LiveJob) -> list[jsonbytes.JsonBytes]:
    if job.state is not JobState.BLOCKED:
        return []
    return [jsonbytes.encode(parent.handle) for parent in waiting.parents(engine, job, _NAMES_SHOWN)]


def record_view(record: Record, longest: int, payload: FailedPayload | None = None) -> JobView:
    """A job that has ended; `payload` is that of a failed job that is kept whole."""
    workflow, members = _workflow(record.function, record.result)
    return JobView(
        id=record.id,
        handle=jsonbytes.encode(record.handle),
        function=jsonbytes.encode(record.function),
        unique=jsonbytes.encode(record.unique),
        state=STATES[record.state],
        priority=PRIORITIES[record.priority],
        background=True,
        door=record.door,
        submitted_at=record.submitted_at,
        run_at=None,
        started_at=record.started_at or None,
        finished_at=record.finished_at,
        attempts=record.attempts,
        timeout=0.0,
        worker=jsonbytes.encode(record.worker),
        worker_door=record.worker_door,
        numerator=members or None,
        denominator=members or None,
        code=record.code,
        reason=record.reason,
        payload=None if payload is None else jsonbytes.encode(payload.data, longest),
        payload_size=None if payload is None else payload.size,
        result=jsonbytes.encode(record.result, longest),
        result_size=record.full_size,
        trials=_attempt_views(unpack_attempts(record.failed_attempts)),
        result_kept=record.kept_size,
        keep_until=record.remove_at or record.keep_until or None,
        workflow=workflow,
    )


def cut_text(record: Record) -> str:
    """What to say about a result of which only the beginning is kept; its subject comes before."""
    return (
        f"was cut: the first {record.kept_size:,} of {record.full_size:,} bytes are kept "
        "(settings result_max and keep_results)"
    )


def _attempt_views(attempts: list[Attempt]) -> list[AttemptView]:
    return [
        AttemptView(
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            door=attempt.door,
            worker=jsonbytes.encode(attempt.worker),
            why=attempt.reason,
        )
        for attempt in attempts
    ]
