"""A worker's connections to one server: each lasts until it breaks, and then another is opened."""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from geartrain import backoff
from geartrain.address import Address
from geartrain.backoff import ReconnectDelay
from geartrain.client import arguments
from geartrain.client.cancel_watch import CancelWatch
from geartrain.client.credentials import Credentials
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import Assignment, WorkerProtocol
from geartrain.client.server_pool import CONNECTION_ERRORS
from geartrain.client.slots import Slots
from geartrain.errors import AuthenticationError

if TYPE_CHECKING:
    from geartrain.client.async_worker import AsyncWorker

_log = logging.getLogger("geartrain.worker")


class WorkerConnection:
    """One connection of a worker, from its opening to its end. It is the JobRunner of its protocol."""

    def __init__(self, worker: "AsyncWorker", address: Address, credentials: Credentials, slots: Slots) -> None:
        self._worker = worker
        protocol = registry.worker_class(address)
        self.protocol: WorkerProtocol = protocol(address, self._lost, self, worker.name.encode(), slots.total)
        self.protocol.slots = slots
        self.protocol.tls, self.protocol.token = credentials.tls, credentials.token
        self._watch = CancelWatch(address, credentials, self.revoked)
        self.ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()  # its result says why
        # Why a job of this server cannot be rescheduled; empty: it can.
        self.no_reschedule = ""
        if not protocol.capabilities.reschedule:
            self.no_reschedule = str(arguments.unsupported("reschedule", registry.protocol(address)))

    @property
    def is_open(self) -> bool:
        """Whether answers still reach the server."""
        return not self.ended.done()

    def assigned(self, job: Assignment) -> None:
        """The server assigned a job to this worker."""
        if self.protocol.needs_watch:
            self._watch.begin(job)
        self._worker.assigned(self, job)

    def job_ended(self, job: Assignment) -> None:
        """A job that this connection assigned does not run any more."""
        if self.protocol.needs_watch:
            self._watch.end(job)

    def revoked(self, job: Assignment) -> None:
        """The server took a job back."""
        self._worker.revoked(job)

    def report(self, job: Assignment, kind: str, *values: Any) -> None:
        """Send the report of a running job, while the connection is open."""
        if self.is_open:
            getattr(self.protocol, kind)(job, *values)

    async def close(self) -> None:
        """Close the connection."""
        if self.is_open:
            self.ended.set_result(ConnectionError("closed by this worker"))
            await self._watch.close()
            await self.protocol.close()

    async def stop_watching(self) -> None:
        """After the connection was lost: its jobs are no longer this worker's."""
        await self._watch.close()

    def _lost(self, error: Exception) -> None:
        if self.is_open:
            self.ended.set_result(error)


class ConnectionKeeper:
    """Keeps a worker connected to one server, with growing delays while the server cannot be reached.

    A function whose jobs may take only a share of the worker's slots has a connection of its own, since a server sends
    jobs of any function that a connection has registered.
    """

    def __init__(
        self,
        worker: "AsyncWorker",
        address: Address,
        credentials: Credentials,
        slots: Slots,
        function: bytes | None = None,
    ) -> None:
        self.address = address
        self.slots = slots
        self.function = function  # the only one of this connection; None: all that have no share
        self.connection: WorkerConnection | None = None  # the last that was opened
        self.connected = asyncio.Event()  # and the functions are registered
        self._worker = worker
        self._credentials = credentials
        self._delay = ReconnectDelay()
        self._warned = False  # that the server cannot be reached
        self._stopping = False  # no other connection is opened after this one

    @property
    def open_connection(self) -> WorkerConnection | None:
        """The connection, unless it has ended."""
        return self.connection if self.connection is not None and self.connection.is_open else None

    async def run(self) -> None:
        """Stay connected until `stop_fetching` or cancellation."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            opened_at = loop.time()
            await self._run_connection()
            if loop.time() - opened_at > backoff.GOOD_CONNECTION:
                self._delay.reset()
            await asyncio.sleep(self._delay.next())

    async def _run_connection(self) -> None:
        """Open a connection, and return when it has ended."""
        connection = WorkerConnection(self._worker, self.address, self._credentials, self.slots)
        try:
            await connection.protocol.open(self._worker.timeouts(self.function))
        except AuthenticationError as error:
            _log.error("stopping: %s", error)
            self._stopping = True
            self._worker.refused(error)
            return
        except CONNECTION_ERRORS as error:
            if not self._warned:
                self._warned = True
                _log.warning("cannot connect to %s, retrying: %s", self.address, error)
            return
        except Exception:  # a bug in the library must not end the worker: it retries, and logs each time
            _log.exception("cannot connect to %s, retrying", self.address)
            await connection.close()
            return
        except BaseException:
            await connection.close()
            raise
        self.connection = connection
        self._warned = False
        if self._stopping:
            connection.protocol.stop_fetching()
        self.connected.set()
        _log.info("connected to %s", self.address)
        try:
            # Shielded: a cancelled keeper must not cancel the future, which `close` still sets.
            reason = await asyncio.shield(connection.ended)
            _log.warning("connection to %s lost, reconnecting: %s", self.address, reason)
        finally:
            self.connected.clear()
            if not connection.is_open:
                await connection.stop_watching()

    def stop_fetching(self) -> None:
        """Take no more jobs."""
        self._stopping = True
        if self.open_connection is not None:
            self.open_connection.protocol.stop_fetching()

    async def fetching_stopped(self) -> None:
        """After `stop_fetching`: wait until no job can arrive any more."""
        if self.open_connection is not None:
            with contextlib.suppress(*CONNECTION_ERRORS):
                await self.open_connection.protocol.fetching_stopped()

    async def close(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            await self.connection.close()
