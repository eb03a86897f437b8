"""The packets that an application gets about its sync job."""

from typing import TYPE_CHECKING

from geartrain.doors.danga import completion
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.connection import DangaConnection


class DangaWatcher(Watcher):
    """One per connection, with one job at a time. The draft has no packets for partial data and warnings."""

    __slots__ = ("connection",)

    def __init__(self, connection: "DangaConnection") -> None:
        super().__init__()
        self.connection = connection

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """job_status_res."""
        self.connection.write(wire.job_status_res(progress.numerator, progress.denominator, progress.seconds_left))

    def complete(self, job: LiveJob, result: bytes) -> None:
        """job_complete_res with result code 0."""
        self._end(completion.of_success(job, self.connection.engine.now, result))

    def fail(self, job: LiveJob, reason: str) -> None:
        """job_complete_res with an error code and no data: that is for workers; the reason is in the record."""
        self._end(completion.of_failure(job, self.connection.engine.now))

    def exception(self, job: LiveJob, data: bytes) -> None:
        """job_complete_res with the worker's error code and data."""
        self._end(completion.of_failure(job, self.connection.engine.now, data))

    def _end(self, packet: bytes) -> None:
        self.connection.write(packet)
        self.connection.sync_job_ended()
