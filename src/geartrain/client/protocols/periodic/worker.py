"""A worker of Periodic, in the current dialect: one grab waits for each job that may still begin.

On CANT_DO a server takes back the running jobs of that function, so it is sent when none runs any more. A job that is
assigned meanwhile is given back, without counting as an attempt.
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
    """A worker; the handle of a job is its function and its name."""

    capabilities = WORKER

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self._session = Session(address, lost)
        self._functions: set[bytes] = set()
        self._running: Counter[bytes] = Counter()  # jobs by function
        self._stopped_fetching = False

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """The length of a name is one byte."""
        return too_long(function, "function")

    @property
    def needs_watch(self) -> bool:
        """The protocol cannot take a job back."""
        return True

    async def open(self, functions: dict[bytes, float]) -> None:
        """Register, and grab jobs. The protocol has no time limits of functions."""
        self.check_names(*functions)
        await self._open_session()
        for function in functions:
            self.register(function, 0.0)
        for _ in range(self.concurrency):
            self._grab()

    def register(self, function: bytes, timeout: float) -> None:
        """CAN_DO."""
        self.check_names(function)
        self._functions.add(function)
        self._session.send(wire.CAN_DO, wire.short(function))

    def unregister(self, function: bytes) -> None:
        """CANT_DO, when none of its jobs runs."""
        self._functions.discard(function)
        if not self._running[function]:
            self._session.send(wire.CANT_DO, wire.short(function))

    def stop_fetching(self) -> None:
        """Unregister all functions: a grab cannot be taken back."""
        self._stopped_fetching = True
        for function in list(self._functions):
            self.unregister(function)

    def data(self, job: Assignment, data: bytes) -> None:
        """WORK_DATA."""
        self._session.send(wire.WORK_DATA, _handle(job) + data)

    def complete(self, job: Assignment, result: bytes) -> None:
        """WORK_DONE."""
        self._end(job, wire.WORK_DONE, _handle(job) + result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """WORK_FAIL, which carries no reason. The server retries a background job."""
        self._end(job, wire.WORK_FAIL, _handle(job))

    def reschedule(self, job: Assignment, delay: float) -> None:
        """SCHED_LATER, in whole seconds."""
        self._end(job, wire.SCHED_LATER, periodic_client.put_off(job.function, job.unique, math.ceil(delay)))

    def release(self, job: Assignment) -> None:
        """Send nothing, and grab the next job."""
        self._over(job)

    async def close(self) -> None:
        """Close the connection."""
        await self._session.close()

    async def _open_session(self) -> None:
        """Register with a name, or else without: servers before 1.2.9 know no names, and close or do not answer."""
        try:
            await self._session.open(wire.WORKER, self.name, self.tls, self.token)
        except (ConnectionError, ServerGoneError) as error:
            if not self.name or isinstance(error, ConnectionRefusedError):
                raise
            self._session = Session(self.address, self.lost)
            await self._session.open(wire.WORKER, b"", self.tls, self.token)

    def _grab(self) -> None:
        def answered(command: int, arguments: wire.Arguments) -> None:
            if command == wire.JOB_ASSIGN:
                del self._session.waiting[grab]
                self._assigned(grab, arguments.job())
            elif command not in (wire.SUCCESS, wire.NO_JOB, wire.NOOP):
                raise WireError("COMMAND", f"a grab was answered with command {command}")

        grab = self._session.ask(wire.GRAB_JOB, b"", answered)

    def _assigned(self, grab: int, job: wire.PeriodicJob) -> None:
        if job.function not in self._functions:
            self._session.connection.write(periodic_client.request(grab, wire.JOB_UNASSIGNED))
            if not self._stopped_fetching:
                self._grab()
            return
        self._session.connection.write(periodic_client.request(grab, wire.JOB_ASSIGNED))
        self._running[job.function] += 1
        self.runner.assigned(Assignment(job.function, job.payload, job.name, job.name))

    def _end(self, job: Assignment, command: int, arguments: bytes) -> None:
        self._session.send(command, arguments)
        self._over(job)

    def _over(self, job: Assignment) -> None:
        self._running[job.function] -= 1
        if not self._running[job.function]:
            del self._running[job.function]
            if job.function not in self._functions:
                self._session.send(wire.CANT_DO, wire.short(job.function))
        if not self._stopped_fetching:
            self._grab()


def _handle(job: Assignment) -> bytes:
    return periodic_client.handle(job.function, job.unique)
