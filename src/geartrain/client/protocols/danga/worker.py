"""A worker that speaks the 2005 draft: one job at a time on each connection, since answers carry no handle."""

from typing import Final, cast

from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment, whole_numbers
from geartrain.client.protocols.connection import ServerConnection
from geartrain.client.protocols.connection_per_job import ConnectionPerJobWorker, JobConnection
from geartrain.client.protocols.heartbeat import Heartbeat
from geartrain.errors import WireError
from geartrain.wire import danga as wire

WORKER: Final = Capabilities(progress=True, failure=True)

_LAST_CODE: Final = 255


class DangaJobConnection(JobConnection):
    """Requests a job when the worker has a slot, sleeps while the server has none, and requests again when woken."""

    def __init__(self, worker: ConnectionPerJobWorker) -> None:
        super().__init__(worker)
        self.connection = ServerConnection(self._received, self.broken)
        self._reader = wire.Reader(magic=wire.RESPONSE)
        self._asleep = False
        self._wants_slot = False  # a callback waits for one
        self._asking = False
        self._stale = False  # the server does not know the current functions yet
        self._heartbeat = Heartbeat(self._send_heartbeat, lambda: self.job is not None)

    @property
    def asking(self) -> bool:
        """Whether job_assign_req is unanswered."""
        return self._asking

    async def open(self) -> None:
        """Connect, and announce heartbeats with a request that every server answers."""
        await self.connection.open(self.worker.address, self.worker.tls)
        self._send_heartbeat()
        await self.connection.answer()

    def start(self) -> None:
        """worker_connect and job_assign_req."""
        self._send_functions()
        self._ask()

    def _received(self, data: bytes) -> None:
        reader = self._reader
        reader.feed(data)
        while (kind := reader.next()) != wire.MORE:
            if kind == wire.JOB_ASSIGN_RES:
                self._answered(wire.assignment(reader.body))
            elif kind == wire.NOOP:
                self._woken()
            elif kind == wire.JOB_STATUS_RES:
                lease = wire.status(reader.body)
                self._heartbeat.set_lease(lease.numerator / lease.denominator if lease.denominator else 0.0)
                self.connection.answered()
            else:
                raise WireError("INVALID_TYPE", "the server sent a worker a packet for clients")

    def refresh(self) -> None:
        """worker_connect, unless a job may be on its way: the server takes back jobs of removed functions."""
        if self._asleep or self._wants_slot:
            self._send_functions()
        else:
            self._stale = True

    def stop_fetching(self) -> None:
        """worker_disconnect."""
        if self._asleep or self._wants_slot:
            self._leave()

    def abandon(self) -> None:
        """Close at once."""
        self._end()
        self.connection.abandon()

    async def close(self) -> None:
        """Close after the last packet has left."""
        self._end()
        await self.connection.close()

    def broken(self, error: Exception) -> None:
        """The slot of a running job is given back by `release`."""
        self._end()
        super().broken(error)

    def end(self, code: int, result: bytes) -> None:
        """job_complete_announce, then request the next job."""
        self.drop_job()
        self.connection.write(wire.job_complete_announce(code, result))
        if self.worker.stopped_fetching:
            self._leave()
            return
        if self._stale:
            self._send_functions()
        self._ask()

    def drop_job(self) -> None:
        """Drop the job, and give back its slot."""
        if self.job is not None:
            self.job = None
            self.worker.slots.give()

    def _answered(self, job: wire.AssignedJob | None) -> None:
        self._asking = False
        self.worker.answered()
        if job is not None:
            self._heartbeat.begin()
            self.assign(job.name, job.args)
            return
        self.worker.slots.give()
        if self.worker.stopped_fetching:
            self._leave()
        else:
            self._asleep = True
            if self._stale:
                self._send_functions()
            self.connection.write(wire.worker_sleep())

    def _send_heartbeat(self) -> None:
        self.connection.write(wire.job_status_req(wire.HEARTBEAT))

    def _woken(self) -> None:
        """There may be a job; or the one that it has was taken back."""
        if self.job is not None:
            self.worker.runner.revoked(self.job)
        elif self._asleep and not self.leaving:
            self._asleep = False
            self._ask()

    def _send_functions(self) -> None:
        self._stale = False
        self.connection.write(wire.worker_connect(self.worker.functions))

    def _ask(self) -> None:
        if self.worker.slots.take():
            self._asking = True
            self.connection.write(wire.job_assign_req())
        else:
            self._wants_slot = True
            self.worker.slots.wait(self._slot_free)

    def _slot_free(self) -> None:
        if not self._wants_slot:
            self.worker.slots.pass_on()
            return
        self._wants_slot = False
        self._ask()

    def _end(self) -> None:
        """Request no more; give back the slot of a request that will not be answered."""
        self._heartbeat.stop()
        self._wants_slot = False
        if self._asking:
            self._asking = False
            self.worker.slots.give()

    def _leave(self) -> None:
        """worker_disconnect, after which the server closes the connection."""
        self.leaving = True
        self._asleep = self._wants_slot = False
        self.connection.write(wire.worker_disconnect())


class Worker(ConnectionPerJobWorker):
    """A worker with a connection for each job that may run at once."""

    capabilities = WORKER
    connection_class = DangaJobConnection

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Names end with NUL, and are not empty."""
        return unsupported_name(function)

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:
        """job_status_announce."""
        numbers = whole_numbers(numerator, denominator)
        self._on(job).connection.write(wire.job_status_announce(*numbers))

    def complete(self, job: Assignment, result: bytes) -> None:
        """job_complete_announce with code 0."""
        self._on(job).end(wire.SUCCESS, result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """job_complete_announce with another code, and the data or the reason as result."""
        self._on(job).end(min(max(code, 1), _LAST_CODE), data or reason.encode())

    def release(self, job: Assignment) -> None:
        """Drop the job, also after the connection was lost."""
        self._on(job).drop_job()
        super().release(job)

    def _on(self, job: Assignment) -> DangaJobConnection:
        return cast(DangaJobConnection, self.connection_of(job))


def unsupported_name(function: bytes) -> str:
    """Why the draft cannot express the name of this function; empty if it can."""
    if not function:
        return "the name of a function of the 2005 draft is not empty"
    return "a function of the 2005 draft contains no NUL" if b"\0" in function else ""
