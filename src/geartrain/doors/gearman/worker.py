"""A Gearman worker, as the engine sees it."""

from typing import TYPE_CHECKING

from geartrain.doors.gearman import unique
from geartrain.doors.worker_lease import WorkerLease
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection


class GearmanWorker(Worker):
    """Woken with NOOP; with the job itself while its grab lingers, or after ALL_YOURS."""

    __slots__ = ("all_yours", "connection", "grab", "is_lingering", "lease", "lingers_until", "wants_notices")

    def __init__(self, connection: "GearmanConnection") -> None:
        super().__init__("gearman", peer=connection.peer)
        self.connection = connection
        self.all_yours = False  # it has no other server, and takes jobs that it did not ask for
        self.grab = 0  # the packet type of the grab that lingers; 0: none
        self.lingers_until = 0.0  # when that grab, or the last one, is answered in any case
        self.is_lingering = False  # it is listed by the door's `lingers`
        self.wants_notices = False  # it is to be told that a job was taken from it
        self.lease: WorkerLease | None = None  # of a worker that sends heartbeats

    def wake(self) -> None:
        """Send NOOP, or the job itself."""
        kind = self.grab
        if kind:
            self.grab = 0
            self.answer_grab(kind)
            return
        if self.all_yours:
            job = self.connection.engine.claim(self)
            if job is not None:
                self.assign(job, wire.GRAB_JOB)
                return
        self.connection.write(wire.NOOP_PACKET)

    def revoked(self, job: LiveJob) -> None:
        """The job timed out or was cancelled; its late answer is ignored, because Perl's workers exit at an ERROR.

        A worker that has announced that it understands it gets WORK_FAIL. Others would not survive that.
        """
        self.forgive_late(job.handle)
        if self.wants_notices:
            self.connection.write(wire.response(wire.WORK_FAIL, job.handle))

    def announce(self) -> float:
        """The worker understands notices and sends heartbeats; return for how many seconds it may be silent."""
        self.wants_notices = True
        seconds = self.connection.door.limits.worker_lease
        if seconds and self.lease is None:
            self.lease = WorkerLease(self.connection, self, seconds)
        return seconds

    def answer_grab(self, kind: int) -> None:
        """Assign a job, or send NO_JOB."""
        job = self.connection.engine.claim(self)
        if job is None:
            self.connection.write(wire.NO_JOB_PACKET)
        else:
            self.assign(job, kind)

    def end_linger(self) -> None:
        """End a grab that lingers with NO_JOB."""
        self.grab = 0
        self.connection.engine.stop_sleeping(self)
        self.connection.write(wire.NO_JOB_PACKET)

    def assign(self, job: LiveJob, kind: int) -> None:
        """Send the JOB_ASSIGN packet that this type of grab asks for."""
        if job.attempts > 1 and self.wants_notices:
            notice = b"%b\0%d" % (wire.GEARTRAIN_ATTEMPT, job.attempts)
            self.connection.write(wire.response(wire.OPTION_RES, notice))
        if kind == wire.GRAB_JOB:
            packet = wire.JOB_ASSIGN
            names = job.function
        elif kind == wire.GRAB_JOB_ALL and job.reducer:
            packet = wire.JOB_ASSIGN_ALL
            names = b"%b\0%b\0%b" % (job.function, unique.display(job.unique), job.reducer)
        else:
            packet = wire.JOB_ASSIGN_UNIQ
            names = b"%b\0%b" % (job.function, unique.display(job.unique))
        self.connection.write(wire.assignment(packet, job.handle, names, job.payload))
