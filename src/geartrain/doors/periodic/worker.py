"""A Periodic worker: its grabs wait here for jobs.

A worker sends one grab for each job that it can run, each with its own message id. A grab that is repeated, as clients
do every second, still counts once.
"""

from typing import TYPE_CHECKING

from geartrain.doors.periodic import job_names
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection


class PeriodicWorker(Worker):
    """Asleep while it has grabs and there are no jobs."""

    __slots__ = ("assigned", "connection", "grabbed_by", "grabs")

    def __init__(self, connection: "PeriodicConnection") -> None:
        super().__init__("periodic", peer=connection.peer)
        self.connection = connection
        self.grabs: dict[bytes, None] = {}  # message ids that wait for a job, the oldest first
        self.assigned: dict[bytes, LiveJob] = {}  # by the message id of the grab that got it
        self.grabbed_by: dict[LiveJob, bytes] = {}  # the inverse of `assigned`

    def wake(self) -> None:
        """Assign jobs to its grabs, and sleep if grabs are left."""
        engine = self.connection.engine
        while self.grabs:
            job = engine.claim(self)
            if job is None:
                engine.sleep(self)
                return
            message_id = next(iter(self.grabs))
            del self.grabs[message_id]
            self._assign(message_id, job)

    def grab(self, message_id: bytes) -> None:
        """Add a grab."""
        if message_id not in self.grabs:
            self.grabs[message_id] = None
            if not self.idle:
                self.wake()

    def done(self, job: LiveJob) -> None:
        """Forget a job that the worker no longer runs, and release its locks."""
        self._forget(job)
        self.connection.periodic.locks.release_all(job)

    def revoked(self, job: LiveJob) -> None:
        """The job timed out, or was cancelled."""
        self.done(job)

    def forgive_late(self, handle: bytes) -> None:
        """A broadcast has ended because another worker completed it; ignore reports of this one."""
        for job in [job for job in self.grabbed_by if job.handle == handle]:
            self._forget(job)

    def _forget(self, job: LiveJob) -> None:
        message_id = self.grabbed_by.pop(job, None)
        if message_id is not None and self.assigned.get(message_id) is job:
            del self.assigned[message_id]

    def _assign(self, message_id: bytes, job: LiveJob) -> None:
        connection = self.connection
        self.assigned[message_id] = job
        self.grabbed_by[job] = message_id
        timeout = connection.periodic.timeout
        if timeout:
            connection.engine.lease(job, timeout)
        today = connection.dialect is wire.TODAY
        arguments = job_names.argument(job, timeout if today else 0)
        if not today:
            arguments = wire.short(job.handle) + arguments
        connection.answer(message_id, wire.JOB_ASSIGN, arguments)
