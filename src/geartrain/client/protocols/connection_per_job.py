"""Workers of protocols in which a connection has one job at a time: as many connections as jobs may run at once.

A lane that breaks takes its link with it: the others lead to the same server, and the library above opens a new link.
"""

import abc
import asyncio
from typing import ClassVar

from geartrain.address import Address
from geartrain.client.protocols.base import Assignment, JobRunner, Lost, WorkerProtocol
from geartrain.errors import ClientError, WireError


class ConnectionJob(Assignment):
    """A job, and the connection that it came by."""

    __slots__ = ("connection",)

    def __init__(self, connection: "JobConnection", function: bytes, payload: bytes) -> None:
        super().__init__(function, payload)
        self.connection = connection


class JobConnection(abc.ABC):
    """One connection: it asks for a job, has it, answers, and asks again."""

    def __init__(self, link: "ConnectionPerJobWorker") -> None:
        self.link = link
        self.job: ConnectionJob | None = None
        self.leaving = False  # its end is no surprise any more

    @property
    def asking(self) -> bool:
        """Whether a job may be on its way."""
        return False

    @abc.abstractmethod
    async def open(self) -> None:
        """Connect, and return when the server has answered."""

    @abc.abstractmethod
    def start(self) -> None:
        """Offer the link's functions, and ask for a job."""

    @abc.abstractmethod
    def refresh(self) -> None:
        """The link's functions have changed: say so, now if there is no job or else with its end."""

    @abc.abstractmethod
    def rest(self) -> None:
        """Ask for no more jobs: leave, now if there is no job or else with its end."""

    @abc.abstractmethod
    def hang_up(self) -> None:
        """Close the connection at once; nobody is told."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what has gathered, and close the connection; nobody is told."""

    def assign(self, function: bytes, payload: bytes) -> None:
        """The server has given it a job."""
        self.job = ConnectionJob(self, function, payload)
        self.link.runner.assigned(self.job)

    def broken(self, error: Exception) -> None:
        """The connection has ended by itself."""
        self.link.lane_broken(self, error)


class ConnectionPerJobWorker(WorkerProtocol):
    """The lanes, and what they have in common."""

    connection: ClassVar[type[JobConnection]]

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self.functions: dict[bytes, float] = {}
        self.resting = False
        self.connections: set[JobConnection] = set()
        self._over = False
        self._rested: asyncio.Future[None] | None = None
        self._renewals: set[asyncio.Task[None]] = set()

    async def open(self, functions: dict[bytes, float]) -> None:
        """One lane tells whether there is a server; then the others."""
        self.functions = dict(functions)
        try:
            connections = [await self._opened()]
            connections += await asyncio.gather(*(self._opened() for _ in range(self.concurrency - 1)))
        except BaseException:
            self._over = True
            for connection in self.connections:
                connection.hang_up()
            raise
        for connection in connections:
            connection.start()

    def offer(self, function: bytes, timeout: float) -> None:
        """Say it on every lane."""
        self.functions[function] = timeout
        self._refresh()

    def withdraw(self, function: bytes) -> None:
        """Say it on every lane; one that runs a job of it when that is over, or else the server would take it back."""
        self.functions.pop(function, None)
        self._refresh()

    def rest(self) -> None:
        """Leave, lane by lane."""
        self.resting = True
        for connection in list(self.connections):
            connection.rest()

    async def rested(self) -> None:
        """No lane has asked for a job without having been answered."""
        if any(connection.asking for connection in self.connections):
            self._rested = asyncio.get_running_loop().create_future()
            await self._rested

    def release(self, job: Assignment) -> None:
        """Neither protocol can ask for a job without having answered the last one: begin anew."""
        self.renew(self.lane_of(job))

    async def close(self) -> None:
        """Hang up everywhere."""
        self._over = True
        renewals = list(self._renewals)
        for renewal in renewals:
            renewal.cancel()
        await asyncio.gather(*renewals, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self.connections))
        self.connections.clear()
        self.answered()

    # What lanes say

    def lane_of(self, job: Assignment) -> JobConnection:
        """Where a job came from."""
        assert isinstance(job, ConnectionJob)
        return job.connection

    def renew(self, connection: JobConnection) -> None:
        """Take a fresh connection in the place of this one, whose job goes back to the server if it still has one."""
        connection.hang_up()
        self.connections.discard(connection)
        if self._over or self.resting:
            return
        renewal = asyncio.get_running_loop().create_task(self._replace())
        self._renewals.add(renewal)
        renewal.add_done_callback(self._renewals.discard)

    def answered(self) -> None:
        """A lane has been answered, or is gone."""
        if (
            self._rested is not None
            and not self._rested.done()
            and not any(connection.asking for connection in self.connections)
        ):
            self._rested.set_result(None)

    def lane_broken(self, connection: JobConnection, error: Exception) -> None:
        """A connection has ended."""
        self.connections.discard(connection)
        self.answered()
        if not connection.leaving:
            self._fail(error)

    async def _opened(self) -> JobConnection:
        connection = self.connection(self)
        self.connections.add(connection)
        await connection.open()
        return connection

    async def _replace(self) -> None:
        try:
            connection = await self._opened()
        except (OSError, ClientError, WireError) as error:
            if not self.resting:
                self._fail(error)
            return
        connection.start()
        if self.resting:
            connection.rest()

    def _refresh(self) -> None:
        for connection in list(self.connections):
            connection.refresh()

    def _fail(self, error: Exception) -> None:
        if self._over:
            return
        self._over = True
        for connection in self.connections:
            connection.hang_up()
        self.connections.clear()
        self.answered()
        self.lost(error)
