"""What a job waits for, in a few words: shown with the job wherever jobs are shown."""

from itertools import islice

from geartrain.admin.base import printable
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.limits import FlowLimits
from geartrain.engine.partitions import Partition
from geartrain.model import JobState, unpack_parents


def reason(engine: Engine, job: LiveJob) -> str:
    """Why a job is not running; empty if it is, or is over."""
    if job.state is JobState.SCHEDULED:
        return "its time"
    if job.state is JobState.RESERVING:
        return "its unique key, which another server may have"
    if job.state is JobState.BLOCKED:
        return _of_parents(engine, job)
    if job.state is not JobState.QUEUED:
        return ""
    function = engine.functions[job.function]
    return of_function(engine, function) or _of_partition(engine, function, job) or _of_workers(function)


def parents(engine: Engine, job: LiveJob, most: int) -> list[LiveJob]:
    """The first of the unfinished jobs that a blocked job waits for."""
    found = (engine.jobs.get(id) or engine.dead.get(id) for id in unpack_parents(job.after).ids)
    return list(islice((parent for parent in found if parent is not None), most))


def _of_parents(engine: Engine, job: LiveJob) -> str:
    first = parents(engine, job, 1)
    if not first:  # another server of the cluster has them
        return "other jobs to end"
    name = printable(first[0].handle)
    if job.parents_left > 1:
        return f"{job.parents_left:,} jobs to end, such as {name}"
    if first[0].state is JobState.DEAD:
        return f"job {name}, which is dead, to be retried or deleted"
    return f"job {name} to end"


def of_function(engine: Engine, function: Function) -> str:
    """Why none of the jobs of a function is assigned; empty if they are."""
    if function.paused:
        return "the function to be resumed"
    if function.lapsed:
        return "the store, which does not answer"
    limits = function.flow.limits if function.flow is not None and function.full else None
    if limits is None:
        return ""
    if 0 < limits.max_running <= function.running:
        return f"one of {limits.max_running} running jobs to end (max_running)"
    return "the next start that the rate allows (rate)"


def _of_partition(engine: Engine, function: Function, job: LiveJob) -> str:
    partitions, flow = function.partitions, function.flow
    partition = partitions.by_name.get(job.partition) if partitions is not None else None
    if partition is None or flow is None or not partition.held:
        return ""
    return _limit_of(partition, flow.limits)


def _limit_of(partition: Partition, limits: FlowLimits) -> str:
    if 0 < limits.max_running_per_partition <= partition.running:
        return f"one of {partition.running} running jobs of its partition to end (max_running_per_partition)"
    return "the next start that the rate of its partition allows (rate_per_partition)"


def _of_workers(function: Function) -> str:
    return "a free worker" if function.workers else "a worker: none offers the function"
