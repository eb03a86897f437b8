"""A worker that speaks the draft, as the engine sees it."""

from typing import TYPE_CHECKING

from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.connection import DangaConnection


class DangaWorker(Worker):
    """It has one job at a time: what it announces carries no handle."""

    __slots__ = ("assigned", "connection")

    def __init__(self, connection: "DangaConnection") -> None:
        super().__init__("danga", peer=connection.peer)
        self.connection = connection
        # What it was handed and has not completed. The draft cannot tell it that a job was taken from it, so this
        # may be a job that it no longer has; what it announces of that is passed over.
        self.assigned: LiveJob | None = None

    def wake(self) -> None:
        """There may be a job for it."""
        self.connection.write(wire.NOOP_PACKET)

    @property
    def job(self) -> LiveJob | None:
        """The job that it works on, if that is still its own."""
        assigned = self.assigned
        if assigned is not None and self.running.get(assigned.handle) is assigned:
            return assigned
        return None
