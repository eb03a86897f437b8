"""A worker that speaks the 2005 draft: on each connection one job at a time, since answers carry no handle."""

from typing import Final, cast

from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment, whole_numbers
from geartrain.client.protocols.connection import ServerConnection
from geartrain.client.protocols.connection_per_job import ConnectionPerJobWorker, JobConnection
from geartrain.errors import WireError
from geartrain.wire import danga as wire

WORKER: Final = Capabilities(progress=True, failure=True)

_LAST_CODE: Final = 255


class DangaJobConnection(JobConnection):
    """It asks when the worker has a slot for a job, sleeps while there is none, and asks again when it is woken."""

    def __init__(self, worker: ConnectionPerJobWorker) -> None:
        super().__init__(worker)
        self.connection = ServerConnection(self._received, self.broken)
        self._reader = wire.Reader(magic=wire.RESPONSE)
        self._asleep = False
        self._wants_slot = False  # will be told when one is free
        self._asking = False
        self._stale = False  # the server does not know the functions of today yet

    @property
    def asking(self) -> bool:
        """Whether its question is open."""
        return self._asking

    async def open(self) -> None:
        """Connect, and ask something that every server answers."""
        await self.connection.open(self.worker.address, self.worker.tls)
        self.connection.write(wire.job_status_req(b""))
        await self.connection.answer()

    def start(self) -> None:
        """worker_connect and job_assign_req."""
        self._introduce()
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
                self.connection.answered()
            else:
                raise WireError("INVALID_TYPE", "the server sent a worker what is for clients")

    def refresh(self) -> None:
        """worker_connect, unless a job may be on its way: it would be taken back if it were of a lost function."""
        if self._asleep or self._wants_slot:
            self._introduce()
        else:
            self._stale = True

    def stop_fetching(self) -> None:
        """worker_disconnect."""
        if self._asleep or self._wants_slot:
            self._leave()

    def hang_up(self) -> None:
        """At once."""
        self._end()
        self.connection.abandon()

    async def close(self) -> None:
        """When the last words have left."""
        self._end()
        await self.connection.close()

    def broken(self, error: Exception) -> None:
        """The slot of a job that runs is given back by its `release`."""
        self._end()
        super().broken(error)

    def end(self, code: int, result: bytes) -> None:
        """job_complete_announce, and on to the next."""
        self.let_go()
        self.connection.write(wire.job_complete_announce(code, result))
        if self.worker.stopped_fetching:
            self._leave()
            return
        if self._stale:
            self._introduce()
        self._ask()

    def let_go(self) -> None:
        """It has no job any more."""
        if self.job is not None:
            self.job = None
            self.worker.slots.give()

    def _answered(self, job: wire.AssignedJob | None) -> None:
        self._asking = False
        self.worker.answered()
        if job is not None:
            self.assign(job.name, job.args)
            return
        self.worker.slots.give()
        if self.worker.stopped_fetching:
            self._leave()
        else:
            self._asleep = True
            if self._stale:
                self._introduce()
            self.connection.write(wire.worker_sleep())

    def _woken(self) -> None:
        if self._asleep and not self.leaving:
            self._asleep = False
            self._ask()

    def _introduce(self) -> None:
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
        """Nothing more is asked for; the slot of a question that will not be answered goes back."""
        self._wants_slot = False
        if self._asking:
            self._asking = False
            self.worker.slots.give()

    def _leave(self) -> None:
        """The server closes the connection when it has heard it."""
        self.leaving = True
        self._asleep = self._wants_slot = False
        self.connection.write(wire.worker_disconnect())


class Worker(ConnectionPerJobWorker):
    """As many lanes as jobs may run at once."""

    capabilities = WORKER
    connection_class = DangaJobConnection

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Names end with NUL here, and none is empty."""
        return unsupported_name(function)

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:
        """job_status_announce."""
        numbers = whole_numbers(numerator, denominator)
        self._on(job).connection.write(wire.job_status_announce(*numbers))

    def complete(self, job: Assignment, result: bytes) -> None:
        """Code 0."""
        self._on(job).end(wire.SUCCESS, result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """Another code, and the worker's words."""
        words = data or reason.encode()
        self._on(job).end(min(max(code, 1), _LAST_CODE), words)

    def release(self, job: Assignment) -> None:
        """It may come when the connection is gone."""
        self._on(job).let_go()
        super().release(job)

    def _on(self, job: Assignment) -> DangaJobConnection:
        return cast(DangaJobConnection, self.connection_of(job))


def unsupported_name(function: bytes) -> str:
    """Why the draft cannot express the name of this function; empty if it can."""
    if not function:
        return "a function of the 2005 draft has a name"
    return "a function of the 2005 draft contains no NUL" if b"\0" in function else ""
