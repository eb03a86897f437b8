"""Recount the partitions of all functions, and what their limits allow."""

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.partitions import Partition, Partitions
from geartrain.model import JobState
from geartrain.rates import Rate


def audit_limits(engine: Engine, jobs: list[LiveJob]) -> None:
    """Fail on the first difference."""
    for name, function in engine.functions.items():
        mine = [job for job in jobs if job.function == name]
        _limits(engine, function)
        if function.partitions is None:
            assert not any(job.partition for job in mine if job.state is JobState.QUEUED)
            assert not any(queue.is_held or queue.partitions is not None for queue in function.queues)
            assert function.flow is None or not function.flow.limits.of_partitions
        else:
            assert all(queue.partitions is function.partitions for queue in function.queues)
            _partitions(engine, function, function.partitions, mine)
            _rings(function, function.partitions)


def _limits(engine: Engine, function: Function) -> None:
    assert function.resting == (function.paused or function.lapsed or function.full)
    flow = function.flow
    if flow is None:
        assert not function.full
        return
    at_limit = 0 < flow.limits.max_running <= function.running
    _at_rest(engine, function.full, at_limit, flow.limits.rate, flow.next_at, flow.awaited_at)
    _awaited(engine, flow.awaited_at, function, None)


def _partitions(engine: Engine, function: Function, partitions: Partitions, jobs: list[LiveJob]) -> None:
    flow = function.flow
    assert partitions.is_limited == (flow is not None and flow.limits.of_partitions)
    for name, partition in partitions.by_name.items():
        mine = [job for job in jobs if job.partition == name]
        running = len([job for job in mine if job.state is JobState.RUNNING])
        assert partition.name == name
        assert partition.queued == len([job for job in mine if job.state is JobState.QUEUED])
        assert partition.running == (running if partitions.is_limited else 0)
        assert partition.queued or partition.running or partition.awaited_at, "a partition that should be forgotten"
        if flow is None:
            assert not partition.held
            assert not partition.awaited_at
            continue
        at_limit = 0 < flow.limits.max_running_per_partition <= partition.running
        rate = flow.limits.rate_per_partition
        _at_rest(engine, partition.held, at_limit, rate, partition.next_at, partition.awaited_at)
        _awaited(engine, partition.awaited_at, function, partition)
    counted = [job for job in jobs if job.state is JobState.QUEUED or partitions.is_limited]
    waiting = [job for job in counted if job.state in (JobState.QUEUED, JobState.RUNNING)]
    assert {job.partition for job in waiting} <= partitions.by_name.keys()


def _at_rest(engine: Engine, rests: bool, at_limit: bool, rate: Rate | None, next_at: float, awaited_at: float) -> None:
    """Whether it is at its limit may have changed with the time, and not otherwise, since it was looked at."""
    if rests:
        in_time = rate is not None and 0.0 < awaited_at <= rate.due_at(next_at)
        assert at_limit or in_time, "it would rest for too long"
    else:
        assert not at_limit
        assert rate is None or rate.due_at(next_at) <= engine.now
    if rate is None:
        assert not awaited_at


def _awaited(engine: Engine, awaited_at: float, function: Function, partition: Partition | None) -> None:
    if awaited_at:
        entries = [entry for entry in engine._awaited if entry[0] == awaited_at and entry[3] is partition]
        assert [entry for entry in entries if entry[2] is function]
        assert engine.is_awaiting
        assert engine.deadline() <= awaited_at


def _rings(function: Function, partitions: Partitions) -> None:
    for queue in function.queues:
        lanes = [partition.lanes[queue.priority] for partition in partitions.by_name.values()]
        ring = list(partitions._rings[queue.priority])
        assert len(ring) == len(set(ring)) == partitions._in_turn[queue.priority]
        assert set(ring) == {lane for lane in lanes if lane is not None and lane.in_turn}
        for lane in lanes:
            assert lane is None or lane.in_turn != lane.partition.held
            assert lane is None or lane.jobs.size, "a lane that should be gone"
        if queue.size:
            assert queue.is_held == (not ring)
