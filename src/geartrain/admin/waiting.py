"""What a job waits for, in a few words: shown with the job wherever jobs are shown."""

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.limits import FlowLimits
from geartrain.engine.partitions import Partition
from geartrain.model import JobState


def reason(engine: Engine, job: LiveJob) -> str:
    """Why a job is not running; empty if it is, or is over."""
    if job.state is JobState.SCHEDULED:
        return "its time"
    if job.state is JobState.RESERVING:
        return "its unique key, which another server may have"
    if job.state is not JobState.QUEUED:
        return ""
    function = engine.functions[job.function]
    return of_function(engine, function) or _of_partition(engine, function, job) or _of_workers(function)


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
