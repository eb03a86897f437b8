"""Recompute all counters and indexes of the engine from its jobs and workers, and compare them."""

from collections import Counter
from collections.abc import Iterable

from geartrain.doors.peer.lending import DistantWorker
from geartrain.engine.engine import Engine
from geartrain.engine.failed_jobs import ATTEMPTS_KEPT
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import JOB_BYTES
from geartrain.engine.queue import JobList, JobQueue
from geartrain.engine.worker import Worker
from geartrain.model import JobState
from tests.property.audit_limits import audit_limits


def audit(engine: Engine, workers: Iterable[Worker]) -> None:
    """Fail on the first difference."""
    everybody = list(workers)
    jobs = list(engine.jobs.values())
    _places(engine, jobs, everybody)
    _functions(engine, jobs, everybody)
    audit_limits(engine, jobs)
    _unique_keys(engine, jobs)
    _crews(engine, everybody)
    _sleepers(engine, everybody)
    _watchers(jobs)


def _in(jobs: Iterable[LiveJob], state: JobState) -> list[LiveJob]:
    return [job for job in jobs if job.state is state]


def _places(engine: Engine, jobs: list[LiveJob], workers: list[Worker]) -> None:
    """Every job is in the one place of its state, and nowhere else."""
    assert all(engine.jobs.get(job.id) is job for job in jobs)
    assert len(engine.jobs) == len(jobs)
    assert all(id == job.id for id, job in engine.dead.items())
    assert all(engine.find(job.handle) is job for job in jobs)
    assert all(engine.find_dead(job.handle) is job for job in engine.dead.values())
    assert not set(engine.jobs) & engine.dead.keys()
    assert all(job.state is JobState.DEAD for job in engine.dead.values())
    assert {job.state for job in jobs} <= {JobState.SCHEDULED, JobState.BLOCKED, JobState.QUEUED, JobState.RUNNING}

    _same(engine.schedule.jobs(), _in(jobs, JobState.SCHEDULED))
    assert len(engine.schedule) == len(_in(jobs, JobState.SCHEDULED))
    leased = [job for job in jobs if job.deadline]
    assert all(job.state is JobState.RUNNING for job in leased)
    _same(engine.leases.jobs(), leased)
    assert len(engine.leases) == len(leased)
    blocked = _in(jobs, JobState.BLOCKED)
    waiting = [*_in(jobs, JobState.SCHEDULED), *_in(jobs, JobState.QUEUED), *blocked]
    _same(engine.expiring.jobs(), [job for job in waiting if job.expires_at])

    lined_up = [job for function in engine.functions.values() for job in function.queued_jobs()]
    _same(lined_up, _in(jobs, JobState.QUEUED))
    running = _in(jobs, JobState.RUNNING)
    held = Counter(job for worker in workers for job in worker.running.jobs())
    for job in running:
        copies = engine.broadcasts.copies.get(job)
        if copies is None:
            assert job.owner is not None
            assert held[job] == 1
            assert job.owner.running.get(job.handle) is job
        else:
            assert job.owner is None
            holders = [worker for worker in workers if worker.running.get(job.handle) is job]
            guests = [worker for worker in workers if job in (worker.inbox or ())]
            assert copies == {*holders, *guests}
            assert copies, "a broadcast without copies is over"
            assert len(holders) + len(guests) == len(copies), "one copy for each"
    assert set(held) <= set(running), "no worker runs what does not run"
    assert set(engine.broadcasts.copies) <= set(running)
    assert engine.running == len(running)
    assert engine.scheduled == len(_in(jobs, JobState.SCHEDULED))
    assert engine.queued == len(lined_up)
    assert engine.blocked == len(blocked)
    assert not engine.unsettled
    edges = Counter(id for job in (*jobs, *engine.dead.values()) for id in job.children or ())
    for job in jobs:
        assert job.parents_left == (edges[job.id] if job.state is JobState.BLOCKED else 0), "it waits for each parent"
        assert (job.parents_left > 0) is (job.state is JobState.BLOCKED)
    held = [*jobs, *engine.dead.values()]
    cold = [job for job in held if job.is_cold]
    assert engine.queued_bytes == sum(JOB_BYTES + (0 if job.is_cold else len(job.payload)) for job in held)
    assert engine.payloads.cold_jobs == len(cold)
    assert engine.payloads.cold_bytes == sum(job.payload_size for job in cold)
    assert all(job.background and job.state is not JobState.RUNNING for job in cold)
    assert engine.dead_counts == Counter(job.function for job in engine.dead.values())
    assert all(job.failed_attempts is None or 0 < len(job.failed_attempts) <= ATTEMPTS_KEPT for job in held)
    assert sum(engine.run_times.counts()) <= sum(engine.wait_times.counts()), (
        "what ended while it ran was claimed before"
    )


def _functions(engine: Engine, jobs: list[LiveJob], workers: list[Worker]) -> None:
    """Counters equal a recount."""
    assert {job.function for job in jobs} <= engine.functions.keys()
    for name, function in engine.functions.items():
        mine = [job for job in jobs if job.function == name]
        queued = _in(mine, JobState.QUEUED)
        assert function.name == name
        assert function.queued == len(queued)
        assert function.running == len(_in(mine, JobState.RUNNING))
        assert function.scheduled == len(_in(mine, JobState.SCHEDULED))
        assert function.blocked == len(_in(mine, JobState.BLOCKED))
        assert function.total == len(mine)
        assert function.submitted >= 0
        assert function.oldest_ready_at() == min(
            (max(job.run_at, job.submitted_at) for job in _heads(function)), default=0.0
        )
        offering = [worker for worker in workers if name in worker.abilities]
        assert function.workers == sum(_counted(worker) for worker in offering)
        assert function.distant_workers == sum(_counted(worker) for worker in offering if worker.is_distant)
        assert function.cold == sum(job.is_cold for job in queued)
        for priority, queue in enumerate(function.queues):
            line = list(queue)
            assert queue.size == len(line)
            assert queue.cold == sum(job.is_cold for job in line)
            _same(line, [job for job in queued if job.priority == priority])
            assert queue.first() is (line[0] if line and not queue.is_held else None)
            assert list(reversed(queue)) == line[::-1]
            assert all(job.run_at <= engine.now for job in line), "nothing runs before its time"
        for jobs_in_order in _lists(function):
            times = [job.run_at for job in jobs_in_order]
            assert times == sorted(times)
            assert jobs_in_order.size == len(times)


def _counted(worker: Worker) -> int:
    """For how many workers this one counts."""
    return worker.workers if isinstance(worker, DistantWorker) else 1


def _unique_keys(engine: Engine, jobs: list[LiveJob]) -> None:
    jobs = [job for job in jobs if job.id not in engine.borrowed]
    keyed = [(job.function, job.unique) for job in jobs if job.unique]
    assert len(keyed) == len(set(keyed))
    assert len(engine.unique_jobs) == len(keyed)
    newest: dict[bytes, LiveJob] = {}
    for job in jobs:
        if job.unique:
            assert engine.unique_jobs.get(job.function, job.unique) is job
            newest[job.unique] = max(job, newest.get(job.unique, job), key=lambda job: job.id)
    assert all(engine.find_unique(key) is job for key, job in newest.items())


def _crews(engine: Engine, workers: list[Worker]) -> None:
    """Crews match the abilities of their members, and list every queue that has jobs."""
    members = Counter(worker.crew for worker in workers if worker.crew is not None)
    assert engine.crews == {crew.key: crew for crew in members if crew.key is not None}
    for crew in members:
        assert crew.size == members[crew]
        names = {function.name for function in crew.functions}
        assert names == crew.key if crew.key is not None else crew.size == 1
        for function in crew.functions:
            assert engine.functions[function.name] is function
            for priority, queue in enumerate(function.queues):
                ready = [entry for entry in crew.ready[priority] if entry.function is function]
                parked = [entry for entry in queue.parked if entry.crew is crew]
                assert [entry.is_parked for entry in (*ready, *parked)] == [bool(parked)]
                if queue.size and not queue.is_held and not function.resting:
                    assert ready or _is_announced_later(function)
            idle_crews = function.distant_crews if crew.is_distant else function.idle_crews
            idle = [entry for entry in idle_crews if entry.crew is crew]
            busy = [entry for entry in crew.parked if entry.function is function]
            assert [entry.is_parked for entry in (*idle, *busy)] == [bool(busy)]
            if list(crew.idle):
                assert idle
    for function in engine.functions.values():
        listed = {entry.crew for entry in (*function.idle_crews, *function.distant_crews)}
        assert listed <= set(members), "no crew that was disbanded"
        assert {entry.crew for queue in function.queues for entry in queue.parked} <= set(members)
    for worker in workers:
        assert worker.crew is None or {function.name for function in worker.crew.functions} == worker.abilities.keys()


def _sleepers(engine: Engine, workers: list[Worker]) -> None:
    """Idle workers are listed, and are not idle beside queued jobs for longer than the grace period."""
    asleep = [worker for crew in {worker.crew for worker in workers} if crew is not None for worker in crew.idle]
    assert len(asleep) == len(set(asleep))
    assert set(asleep) == {worker for worker in workers if worker.idle}
    looked_after = {*(function for _, function in engine._planned_wakes), *engine._freed}
    for worker in asleep:
        assert worker.crew is not None
        assert worker in worker.crew.idle
        assert not worker.inbox
        assert worker.crew.idle_size == len(list(worker.crew.idle))
        if worker.is_distant:
            continue
        for function in worker.crew.functions:
            if _has_assignable(function) and not function.resting and not _is_announced_later(function):
                assert function in looked_after, "somebody was woken, and the next one will be"
                assert engine.deadline() <= engine.now + engine.policy.wake_grace


def _is_announced_later(function: Function) -> bool:
    """Whether payloads are being read: when that ends, its queues are announced, whoever has become the next job."""
    return any(queue.is_reading for queue in function.queues)


def _is_waiting(queue: JobQueue) -> bool:
    """Whether the payload of the next job is on disk; without having it read."""
    first = queue.first()
    return first is not None and first.is_cold and not queue.is_held


def _has_assignable(function: Function) -> bool:
    """Whether a job may be assigned before one whose payload is on disk."""
    for queue in function.queues:
        if _is_waiting(queue):
            return False
        if queue.size and not queue.is_held:
            return True
    return False


def _watchers(jobs: list[LiveJob]) -> None:
    for job in jobs:
        assert job.watchers is None or job.watchers, "no empty lists"
        for watcher in job.watchers or ():
            assert job in watcher.watching


def _heads(function: Function) -> list[LiveJob]:
    """The first job of the linked list, and of the heap, of each queue or partition."""
    return [
        line[0]
        for jobs in _lists(function)
        for line in ([job for job in jobs._linked() if job.state is JobState.QUEUED], _early(jobs))
        if line
    ]


def _lists(function: Function) -> list[JobList]:
    """The lists in which its jobs are in the order of their times."""
    if function.partitions is None:
        return [*function.queues]
    lanes = [lane for partition in function.partitions.by_name.values() for lane in partition.lanes]
    return [lane.jobs for lane in lanes if lane is not None]


def _early(queue: JobList) -> list[LiveJob]:
    return sorted(job for job in queue._early or () if job.state is JobState.QUEUED)


def _same(some: list[LiveJob], others: list[LiveJob]) -> None:
    """Fail unless both have the same jobs, none twice."""
    assert Counter(some) == Counter(others)
    assert len(set(some)) == len(some)
