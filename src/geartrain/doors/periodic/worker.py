"""A Periodic worker: its grabs wait here until there are jobs for them.

A worker has as many grabs out as it can run jobs, each with a message id of its own. A grab that is repeated, as
clients do every second, is still one grab.
"""

from typing import TYPE_CHECKING

from geartrain.doors.periodic import names
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection


class PeriodicWorker(Worker):
    """Asleep as long as it has grabs and no jobs."""

    __slots__ = ("assigned", "connection", "grabbed_by", "grabs")

    def __init__(self, connection: "PeriodicConnection") -> None:
        super().__init__("periodic", peer=connection.peer)
        self.connection = connection
        self.grabs: dict[bytes, None] = {}  # message ids that wait for a job, the oldest first
        self.assigned: dict[bytes, LiveJob] = {}  # by the message id of the grab that got it
        self.grabbed_by: dict[LiveJob, bytes] = {}  # the same the other way round

    def wake(self) -> None:
        """Give its grabs what there is, and wait with the rest."""
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
        """One more job is wanted."""
        if message_id not in self.grabs:
            self.grabs[message_id] = None
            if not self.idle:
                self.wake()

    def done(self, job: LiveJob) -> None:
        """It no longer has this job."""
        self._forget(job)
        self.connection.periodic.locks.release_all(job)

    def revoked(self, job: LiveJob) -> None:
        """Its time ran out, or it was removed."""
        self.done(job)

    def forgive_late(self, handle: bytes) -> None:
        """A broadcast is over because another worker completed it; what this one says of it is passed over."""
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
        travelling = wire.job(names.travelling(job, timeout if today else 0))
        handle = b"" if today else wire.short(job.handle)
        connection.answer(message_id, wire.JOB_ASSIGN, handle + travelling)
