"""A GearMonkey worker, as the engine sees it: a connection that pops from queues."""

from typing import TYPE_CHECKING

from geartrain.doors.gearmonkey import waits
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection


class GearmonkeyWorker(Worker):
    """Asleep while its pop waits."""

    __slots__ = ("connection", "falling_asleep")

    def __init__(self, connection: "GearmonkeyConnection") -> None:
        super().__init__("gearmonkey", connection.name, connection.peer)
        self.connection = connection
        self.falling_asleep = False

    def offer(self, function: bytes) -> None:
        """It pops from a queue of this function."""
        if function not in self.abilities:
            self.connection.engine.register(self, function)
            self.connection.monkey.counts.enrolled[function] += function in self.abilities  # some are not to be had

    def withdraw(self, function: bytes) -> None:
        """It will pop no more from queues of this function."""
        if function in self.abilities:
            self.connection.engine.unregister(self, function)
            self.connection.monkey.counts.enrolled[function] -= 1

    def leave(self) -> None:
        """It is gone, and its jobs go back."""
        monkey = self.connection.monkey
        for function in self.abilities:
            monkey.counts.enrolled[function] -= 1
        monkey.popped.difference_update(job.handle for job in self.running.jobs())
        self.connection.engine.remove_worker(self)

    def wake(self) -> None:
        """There may be a job for its pop. Woken while it falls asleep, there are jobs, but none that it wants."""
        wait = self.connection.wait
        if wait is None:
            return
        if self.falling_asleep:
            self.connection.monkey.waits.choosy[wait] = None
        else:
            self.look()

    def look(self) -> None:
        """Give its pop what there is, or let it wait on."""
        wait = self.connection.wait
        if wait is not None and not waits.serve(wait):
            self.falling_asleep = True
            self.connection.engine.sleep(self)
            self.falling_asleep = False

    def revoked(self, job: LiveJob) -> None:
        """Its time ran out, or it was cancelled; what it says of it is passed over."""
        self.connection.monkey.popped.discard(job.handle)
        self.forgive_late(job.handle)
