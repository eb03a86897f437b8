"""A worker of Periodic, in today's dialect: as many grabs are out as jobs may still begin.

A server that hears CANT_DO takes back what runs of that function, so it is said when nothing runs any more. What is
assigned meanwhile is given back without counting as an attempt.
"""

import math
from collections import Counter
from typing import Final

from geartrain.address import Address
from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment, JobRunner, Lost, WorkerProtocol
from geartrain.client.protocols.periodic.session import Session, too_long
from geartrain.errors import ServerGoneError, WireError
from geartrain.wire import periodic as wire
from geartrain.wire import periodic_client

WORKER: Final = Capabilities(data=True, failure=True, reschedule=True)


class Worker(WorkerProtocol):
    """Function and name are a job's handle."""

    capabilities = WORKER

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self._session = Session(address, lost)
        self._offered: set[bytes] = set()
        self._running: Counter[bytes] = Counter()  # jobs by function
        self._stopped_fetching = False

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Names have one byte for their length."""
        return too_long(function, "function")

    async def open(self, functions: dict[bytes, float]) -> None:
        """Come in, offer and grab. The protocol has no word for how long a job may take."""
        self.check_names(*functions)
        await self._come_in()
        for function in functions:
            self.register(function, 0.0)
        for _ in range(self.concurrency):
            self._grab()

    def register(self, function: bytes, timeout: float) -> None:
        """CAN_DO."""
        self.check_names(function)
        self._offered.add(function)
        self._session.tell(wire.CAN_DO, wire.short(function))

    def unregister(self, function: bytes) -> None:
        """CANT_DO, as soon as nothing of it runs."""
        self._offered.discard(function)
        if not self._running[function]:
            self._session.tell(wire.CANT_DO, wire.short(function))

    def stop_fetching(self) -> None:
        """Offer nothing: a grab cannot be taken back."""
        self._stopped_fetching = True
        for function in list(self._offered):
            self.unregister(function)

    def data(self, job: Assignment, data: bytes) -> None:
        """WORK_DATA."""
        self._session.tell(wire.WORK_DATA, _handle(job) + data)

    def complete(self, job: Assignment, result: bytes) -> None:
        """WORK_DONE."""
        self._end(job, wire.WORK_DONE, _handle(job) + result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """WORK_FAIL: the server tries a background job again. Why it failed cannot be said."""
        self._end(job, wire.WORK_FAIL, _handle(job))

    def reschedule(self, job: Assignment, delay: float) -> None:
        """SCHED_LATER, in whole seconds."""
        self._end(job, wire.SCHED_LATER, periodic_client.put_off(job.function, job.unique, math.ceil(delay)))

    def release(self, job: Assignment) -> None:
        """On to the next."""
        self._over(job)

    async def close(self) -> None:
        """Hang up."""
        await self._session.close()

    async def _come_in(self) -> None:
        """With a name; servers before 1.2.9 know none, and hang up or say nothing."""
        try:
            await self._session.open(wire.WORKER, self.name, self.tls)
        except (ConnectionError, ServerGoneError) as error:
            if not self.name or isinstance(error, ConnectionRefusedError):
                raise
            self._session = Session(self.address, self.lost)
            await self._session.open(wire.WORKER, b"", self.tls)

    def _grab(self) -> None:
        def heard(command: int, arguments: wire.Arguments) -> None:
            if command == wire.JOB_ASSIGN:
                del self._session.waiting[grab]
                self._assigned(grab, arguments.job())
            elif command not in (wire.SUCCESS, wire.NO_JOB, wire.NOOP):
                raise WireError("COMMAND", f"a grab was answered with command {command}")

        grab = self._session.ask(wire.GRAB_JOB, b"", heard)

    def _assigned(self, grab: int, job: wire.PeriodicJob) -> None:
        if job.function not in self._offered:
            self._session.connection.write(periodic_client.request(grab, wire.JOB_UNASSIGNED))
            if not self._stopped_fetching:
                self._grab()
            return
        self._session.connection.write(periodic_client.request(grab, wire.JOB_ASSIGNED))
        self._running[job.function] += 1
        self.runner.assigned(Assignment(job.function, job.payload, job.name, job.name))

    def _end(self, job: Assignment, command: int, arguments: bytes) -> None:
        self._session.tell(command, arguments)
        self._over(job)

    def _over(self, job: Assignment) -> None:
        self._running[job.function] -= 1
        if not self._running[job.function]:
            del self._running[job.function]
            if job.function not in self._offered:
                self._session.tell(wire.CANT_DO, wire.short(job.function))
        if not self._stopped_fetching:
            self._grab()


def _handle(job: Assignment) -> bytes:
    return periodic_client.handle(job.function, job.unique)
