"""A worker that speaks the draft, as the engine sees it."""

from typing import TYPE_CHECKING

from geartrain.doors.linger import LingeringWorker
from geartrain.doors.worker_lease import WorkerLease
from geartrain.engine.job import LiveJob
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.connection import DangaConnection


class DangaWorker(LingeringWorker):
    """A worker with one job at a time: its announcements carry no handle."""

    __slots__ = ("announced", "assigned", "connection", "is_asking", "lease")

    def __init__(self, connection: "DangaConnection") -> None:
        super().__init__("danga", peer=connection.peer)
        self.connection = connection
        # The job that it has not completed. The draft cannot tell it that a job was taken away, so this may be a job
        # that it no longer has; announcements about that are ignored.
        self.assigned: LiveJob | None = None
        self.is_asking = False  # it has asked for a job, whose payload is being read
        self.announced = False  # it understands a noop while it has a job, and sends heartbeats
        self.lease: WorkerLease | None = None

    def wake(self) -> None:
        """Send noop, or the answer that it waits for."""
        if self.is_asking or self.is_lingering:
            self.is_asking = self.is_lingering = False
            self.answer(self.connection.engine.claim(self))
        else:
            self.connection.write(wire.NOOP_PACKET)

    def ask(self) -> None:
        """Answer with a job, if there is one; later, if there is one whose payload has to be read.

        Where jobs keep coming, the answer that there is none lingers.
        """
        engine = self.connection.engine
        job = engine.claim(self)
        if job is not None:
            self.answer(job)
        elif self.crew is not None and self.crew.waits_for_payload:
            self.is_asking = True
            engine.sleep(self)
        elif not self.connection.danga.lingers.hold(self):
            self.answer(None)

    def end_linger(self) -> None:
        """There was no job in time, or the worker sends something else."""
        self.is_lingering = False
        self.connection.engine.stop_sleeping(self)
        self.answer(None)

    def answer(self, job: LiveJob | None) -> None:
        """Send the job, or that there is none."""
        if job is None:
            self.connection.write(wire.NO_JOB_PACKET)
            return
        self.assigned = job
        self.connection.write(wire.job_assign_res(job.function, job.payload))

    def revoked(self, job: LiveJob) -> None:
        """The job timed out or was cancelled. A worker that has announced that it understands it gets noop."""
        if self.announced:
            self.connection.write(wire.NOOP_PACKET)

    def heartbeat(self) -> float:
        """The worker is alive, and will say so while it has a job; return for how many seconds it may be silent."""
        self.announced = True
        seconds = self.connection.door.limits.worker_lease
        if self.lease is not None:
            self.lease.renew()
        elif seconds:
            self.lease = WorkerLease(self.connection, self, seconds)
        return seconds

    @property
    def job(self) -> LiveJob | None:
        """The job that it runs, if that was not taken away."""
        assigned = self.assigned
        if assigned is None or self.running.single is assigned:
            return assigned
        return assigned if self.running.get(assigned.handle) is assigned else None
