"""Workers of protocols in which a connection carries one job at a time: one connection for each job that may run.

When one of the connections breaks, the worker closes all of them, since they lead to the same server; the library opens
a new worker.
"""

import abc
import asyncio
from typing import ClassVar

from geartrain.address import Address
from geartrain.client.protocols.base import Assignment, JobRunner, Lost, WorkerProtocol
from geartrain.errors import ClientError, WireError


class ConnectionJob(Assignment):
    """A job, and the connection that it came from."""

    __slots__ = ("connection",)

    def __init__(self, connection: "JobConnection", function: bytes, payload: bytes) -> None:
        super().__init__(function, payload)
        self.connection = connection


class JobConnection(abc.ABC):
    """One connection: it requests a job, runs it, answers, and requests the next."""

    def __init__(self, worker: "ConnectionPerJobWorker") -> None:
        self.worker = worker
        self.job: ConnectionJob | None = None
        self.leaving = False  # it closes soon: its end is no failure

    @property
    def asking(self) -> bool:
        """Whether a request is unanswered, so that a job may still arrive."""
        return False

    @abc.abstractmethod
    async def open(self) -> None:
        """Connect, and return when the server has answered."""

    @abc.abstractmethod
    def start(self) -> None:
        """Register the worker's functions, and request a job."""

    @abc.abstractmethod
    def refresh(self) -> None:
        """Register the worker's changed functions: now, or after the job that runs."""

    @abc.abstractmethod
    def stop_fetching(self) -> None:
        """Request no more jobs, and disconnect: now, or after the job that runs."""

    @abc.abstractmethod
    def abandon(self) -> None:
        """Close at once; `broken` is not called."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what is queued, then close; `broken` is not called."""

    def assign(self, function: bytes, payload: bytes) -> None:
        """Hand a job that the server sent to the runner."""
        self.job = ConnectionJob(self, function, payload)
        self.worker.runner.assigned(self.job)

    def broken(self, error: Exception) -> None:
        """The connection was lost."""
        self.worker.connection_broken(self, error)


class ConnectionPerJobWorker(WorkerProtocol):
    """A worker with `concurrency` connections of the class `connection_class`."""

    connection_class: ClassVar[type[JobConnection]]

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self.functions: dict[bytes, float] = {}
        self.stopped_fetching = False
        self.connections: set[JobConnection] = set()
        self._over = False
        self._fetches_answered: asyncio.Future[None] | None = None
        self._renewals: set[asyncio.Task[None]] = set()

    async def open(self, functions: dict[bytes, float]) -> None:
        """Open one connection, which tells whether there is a server; then the others."""
        self.check_names(*functions)
        self.functions = dict(functions)
        try:
            connections = [await self._opened()]
            connections += await asyncio.gather(*(self._opened() for _ in range(self.concurrency - 1)))
        except BaseException:
            self._over = True
            for connection in self.connections:
                connection.abandon()
            raise
        for connection in connections:
            connection.start()

    def register(self, function: bytes, timeout: float) -> None:
        """Register it on every connection."""
        self.check_names(function)
        self.functions[function] = timeout
        self._refresh()

    def unregister(self, function: bytes) -> None:
        """Unregister it everywhere; where one of its jobs runs, after that job, which the server would take back."""
        self.functions.pop(function, None)
        self._refresh()

    def stop_fetching(self) -> None:
        """Stop on every connection."""
        self.stopped_fetching = True
        for connection in list(self.connections):
            connection.stop_fetching()

    async def fetching_stopped(self) -> None:
        """Return when every request has been answered."""
        if any(connection.asking for connection in self.connections):
            self._fetches_answered = asyncio.get_running_loop().create_future()
            await self._fetches_answered

    def release(self, job: Assignment) -> None:
        """Replace the connection: these protocols cannot request a job before they have answered the last one."""
        self.renew(self.connection_of(job))

    async def close(self) -> None:
        """Close every connection."""
        self._over = True
        renewals = list(self._renewals)
        for renewal in renewals:
            renewal.cancel()
        await asyncio.gather(*renewals, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self.connections))
        self.connections.clear()
        self.answered()

    # Called by the connections

    def connection_of(self, job: Assignment) -> JobConnection:
        """The connection that a job came from."""
        assert isinstance(job, ConnectionJob)
        return job.connection

    def renew(self, connection: JobConnection) -> None:
        """Replace a connection by a new one. The server takes back a job that this one still has."""
        connection.abandon()
        self.connections.discard(connection)
        if self._over or self.stopped_fetching:
            return
        renewal = asyncio.get_running_loop().create_task(self._replace())
        self._renewals.add(renewal)
        renewal.add_done_callback(self._renewals.discard)

    def answered(self) -> None:
        """A connection's request was answered, or the connection is closed."""
        if (
            self._fetches_answered is not None
            and not self._fetches_answered.done()
            and not any(connection.asking for connection in self.connections)
        ):
            self._fetches_answered.set_result(None)

    def connection_broken(self, connection: JobConnection, error: Exception) -> None:
        """A connection was lost: end the worker, unless that was expected."""
        self.connections.discard(connection)
        self.answered()
        if not connection.leaving:
            self._fail(error)

    async def _opened(self) -> JobConnection:
        connection = self.connection_class(self)
        self.connections.add(connection)
        await connection.open()
        return connection

    async def _replace(self) -> None:
        try:
            connection = await self._opened()
        except (OSError, ClientError, WireError) as error:
            if not self.stopped_fetching:
                self._fail(error)
            return
        connection.start()
        if self.stopped_fetching:
            connection.stop_fetching()

    def _refresh(self) -> None:
        for connection in list(self.connections):
            connection.refresh()

    def _fail(self, error: Exception) -> None:
        if self._over:
            return
        self._over = True
        for connection in self.connections:
            connection.abandon()
        self.connections.clear()
        self.answered()
        self.lost(error)
