"""A Gearman worker, as the engine sees it."""

from typing import TYPE_CHECKING

from geartrain.doors.gearman import unique
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection


class GearmanWorker(Worker):
    """Asleep it is woken by NOOP; with a grab that lingers, or for ALL_YOURS, it is handed the job itself."""

    __slots__ = ("all_yours", "connection", "grab", "grabs")

    def __init__(self, connection: "GearmanConnection") -> None:
        super().__init__("gearman", peer=connection.peer)
        self.connection = connection
        self.all_yours = False  # it has no other server: jobs may be handed to it unasked
        self.grab = 0  # the type of the grab that lingers; 0: none does
        self.grabs = 0  # how many have lingered: tells one from the next

    def wake(self) -> None:
        """There may be a job for it."""
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

    def answer_grab(self, kind: int) -> None:
        """Hand it a job, or tell it that there is none."""
        job = self.connection.engine.claim(self)
        if job is None:
            self.connection.write(wire.NO_JOB_PACKET)
        else:
            self.assign(job, kind)

    def give_up(self) -> None:
        """Its grab has lingered long enough."""
        self.grab = 0
        self.connection.engine.stop_sleeping(self)
        self.connection.write(wire.NO_JOB_PACKET)

    def assign(self, job: LiveJob, kind: int) -> None:
        """Hand it a job in the form that its kind of grab asks for."""
        if kind == wire.GRAB_JOB:
            packet = wire.JOB_ASSIGN
            names = job.function
        elif kind == wire.GRAB_JOB_ALL and job.reducer:
            packet = wire.JOB_ASSIGN_ALL
            names = b"%b\0%b\0%b" % (job.function, unique.shown(job.unique), job.reducer)
        else:
            packet = wire.JOB_ASSIGN_UNIQ
            names = b"%b\0%b" % (job.function, unique.shown(job.unique))
        self.connection.write(wire.assignment(packet, job.handle, names, job.payload))
