"""The packets that a Gearman client gets about its jobs."""

from typing import TYPE_CHECKING

from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection


class GearmanWatcher(Watcher):
    """One per connection; the handle in each packet says which job is meant."""

    __slots__ = ("connection",)

    def __init__(self, connection: "GearmanConnection") -> None:
        super().__init__()
        self.connection = connection

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """WORK_STATUS, with a Gearman worker's own numerals."""
        numbers = progress.verbatim or b"%d\0%d" % (progress.numerator, progress.denominator)
        self.connection.write(wire.about_job(wire.WORK_STATUS, job.handle, numbers))

    def data(self, job: LiveJob, data: bytes) -> None:
        """WORK_DATA."""
        self._send(wire.WORK_DATA, job.handle, data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        """WORK_WARNING."""
        self.connection.write(wire.about_job(wire.WORK_WARNING, job.handle, data))

    def complete(self, job: LiveJob, result: bytes) -> None:
        """WORK_COMPLETE; nearly always for one watcher, to which nothing is to be added."""
        connection = self.connection
        if connection.engine.shared_packets is None:
            connection.write(wire.about_job(wire.WORK_COMPLETE, job.handle, result))
        else:
            self._send(wire.WORK_COMPLETE, job.handle, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        """WORK_FAIL; the protocol has no place for the reason."""
        self.connection.write(wire.response(wire.WORK_FAIL, job.handle))

    def exception(self, job: LiveJob, data: bytes) -> None:
        """WORK_EXCEPTION for clients that asked for it, WORK_FAIL for others.

        gearmand puts a NUL after the handle of that WORK_FAIL, and the C library, PHP and python3-gearman then
        do not recognize the handle and wait for ever. Here it is like any other WORK_FAIL.
        """
        if self.connection.wants_exceptions:
            self.connection.write(wire.about_job(wire.WORK_EXCEPTION, job.handle, data))
        else:
            self.connection.write(wire.response(wire.WORK_FAIL, job.handle))

    def _send(self, kind: int, handle: bytes, data: bytes) -> None:
        """Send a packet that may be large. It is encoded once, however many watchers get it.

        A client that submits the same unique ID several times gets it as many times, as from gearmand: libgearman
        has a task for each, and waits until each has its own packet.
        """
        connection = self.connection
        shared = connection.engine.shared_packets
        if shared is None:
            connection.write(wire.about_job(kind, handle, data))
            return
        packet = shared.get((kind, handle))
        if packet is None:
            packet = shared[(kind, handle)] = wire.about_job(kind, handle, data)
        connection.write(packet)
