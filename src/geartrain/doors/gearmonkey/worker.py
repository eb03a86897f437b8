"""A GearMonkey worker, as the engine sees it: a connection that pops from queues."""

from typing import TYPE_CHECKING

from geartrain.doors.gearmonkey import blocked_pops, keys
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.errors import RequestError

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection


class GearmonkeyWorker(Worker):
    """Asleep while its connection's pop waits."""

    __slots__ = ("adopted_by", "connection", "going_to_sleep")

    def __init__(self, connection: "GearmonkeyConnection") -> None:
        super().__init__("gearmonkey", connection.name, connection.peer)
        self.connection = connection
        # The open connection over which it has reported, if its own has closed.
        self.adopted_by: GearmonkeyConnection | None = None
        self.going_to_sleep = False

    def offer(self, function: bytes) -> None:
        """Register for a function, with the first pop from one of its queues."""
        if function not in self.abilities:
            try:
                self.connection.engine.register(self, function)
            except RequestError as error:
                raise keys.refused_request(error) from None
            if function in self.abilities:  # the engine refuses functions of the server itself
                self.connection.gearmonkey.counts.registered[function] += 1

    def withdraw(self, function: bytes) -> None:
        """Unregister from a function."""
        if function in self.abilities:
            self.connection.engine.unregister(self, function)
            self.connection.gearmonkey.counts.unregister(function)

    def leave(self) -> None:
        """Remove the worker; its jobs are requeued."""
        door = self.connection.gearmonkey
        for function in self.abilities:
            door.counts.unregister(function)
        for job in self.running.jobs():
            door.ending.end_waiting(job.id)
            door.popped.discard(job.handle)
        self.connection.engine.remove_worker(self)

    def expire(self) -> None:
        """Its connection has closed, and it has not reported over another one for the grace period."""
        self.connection.gearmonkey.detached.expire(self)

    def wake(self) -> None:
        """Try the pop. Woken while going to sleep, there are jobs, but of other priorities: recheck after the tick."""
        pop = self.connection.blocked_pop
        if pop is None:
            return
        if self.going_to_sleep:
            self.connection.gearmonkey.blocked_pops.rechecked[pop] = None
        else:
            self.try_pop()

    def try_pop(self) -> None:
        """Answer the pop, or let it wait."""
        pop = self.connection.blocked_pop
        if pop is not None and not blocked_pops.serve(pop):
            self.going_to_sleep = True
            self.connection.engine.sleep(self)
            self.going_to_sleep = False

    def revoked(self, job: LiveJob) -> None:
        """The job timed out or was cancelled; later reports on it are ignored."""
        door = self.connection.gearmonkey
        door.popped.discard(job.handle)
        self.forgive_late(job.handle)
        door.detached.forgive(job.handle)
