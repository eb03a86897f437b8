"""Workers whose connection has closed while they had jobs.

A program with one connection per command (redis-cli in a shell script, PHP without persistent connections) pops a job,
closes the connection, and reports over others. Its jobs stay with the worker of the connection that popped them for a
grace period. A report over another connection renews it: the worker then depends on that connection, and a new period
begins when that one closes. Without a report the worker is removed at the end of the period, and its jobs go back to
their queues.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from geartrain.engine.job import LiveJob

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.worker import GearmonkeyWorker
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

LONGEST_GRACE: Final = 86_400.0  # seconds that a connection may ask for
_MOST_FORGIVEN: Final = 10_000


class DetachedWorkers:
    """The workers of a door that outlive their connection."""

    def __init__(self, tick_loop: "TickLoop", grace: float) -> None:
        self._tick_loop = tick_loop
        self.grace = grace  # seconds
        self._workers: dict[GearmonkeyWorker, DelayedCall | None] = {}  # None: depends on an open connection
        self._by_job: dict[int, GearmonkeyWorker] = {}
        # Handles of jobs that were taken from workers, and until when a late report is ignored.
        self._forgiven: OrderedDict[bytes, float] = OrderedDict()
        self._closed = False

    def __len__(self) -> int:
        return len(self._workers)

    def connection_lost(self, connection: "GearmonkeyConnection") -> None:
        """Detach the worker of a closed connection, and begin the period of the workers that depend on it."""
        worker = connection.worker
        grace = connection.grace if not self._closed else 0.0
        if worker is not None:
            if grace and _has_only_own_jobs(worker):
                self._detach(worker, grace)
            else:
                worker.leave()
        for other in connection.adopted:
            if other in self._workers and other.adopted_by is connection:
                other.adopted_by = None
                self._wait(other, self.grace)
        connection.adopted.clear()

    def adopt(self, worker: "GearmonkeyWorker", connection: "GearmonkeyConnection") -> None:
        """A worker has reported over this connection: if it is detached, it depends on the connection from now on."""
        if worker not in self._workers or worker.adopted_by is connection:
            return
        timer = self._workers[worker]
        if timer is not None:
            timer.cancel()
        self._workers[worker] = None
        worker.adopted_by = connection
        connection.adopted.add(worker)

    def job_left(self, job: LiveJob) -> None:
        """A job has ended or gone back to its queue: a worker that has no other is removed."""
        worker = self._by_job.pop(job.id, None)
        if worker is not None and not worker.running:
            self._remove(worker)

    def forgive(self, handle: bytes) -> None:
        """Ignore a late report on a job that was taken from its worker, over any connection."""
        self._forgiven[handle] = self._tick_loop.engine.now + self.grace
        while len(self._forgiven) > _MOST_FORGIVEN:
            self._forgiven.popitem(last=False)

    def is_forgiven(self, handle: bytes, final: bool) -> bool:
        """Whether to ignore a report; a final one is ignored only once."""
        until = self._forgiven.get(handle, 0.0)
        if final:
            self._forgiven.pop(handle, None)
        return self._tick_loop.engine.now < until

    def close(self) -> None:
        """The door accepts no more connections, so no detached worker can report: remove them."""
        self._closed = True
        for worker in list(self._workers):
            self._remove(worker)

    def _detach(self, worker: "GearmonkeyWorker", grace: float) -> None:
        jobs = worker.running.jobs()
        for job in jobs:
            self._by_job[job.id] = worker
        functions = {job.function for job in jobs}
        for function in [name for name in worker.abilities if name not in functions]:
            worker.withdraw(function)
        self._wait(worker, grace)

    def _wait(self, worker: "GearmonkeyWorker", grace: float) -> None:
        self._workers[worker] = self._tick_loop.timers.call_later(grace, worker.expire)

    def _remove(self, worker: "GearmonkeyWorker") -> None:
        timer = self._workers.pop(worker, None)
        if timer is not None:
            timer.cancel()
        for job in worker.running.jobs():
            self._by_job.pop(job.id, None)
        worker.leave()

    def expire(self, worker: "GearmonkeyWorker") -> None:
        """The period of a worker is over."""
        self._remove(worker)


def _has_only_own_jobs(worker: "GearmonkeyWorker") -> bool:
    """Whether it has jobs, and none of them is a copy of a broadcast, which other workers have too."""
    jobs = worker.running.jobs()
    return bool(jobs) and not worker.inbox and all(job.owner is worker for job in jobs)
