"""A worker's place at one server: it is kept filled, however often the connection breaks."""

import asyncio
import contextlib
import logging
import ssl
from typing import TYPE_CHECKING, Any

from geartrain import backoff
from geartrain.address import Address
from geartrain.backoff import ReconnectDelay
from geartrain.client import arguments
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import Assignment, WorkerProtocol
from geartrain.client.server_pool import CONNECTION_ERRORS

if TYPE_CHECKING:
    from geartrain.client.async_worker import AsyncWorker

_log = logging.getLogger("geartrain.worker")


class WorkerConnection:
    """One connection of a worker, from its opening to its end; the hands of its protocol."""

    def __init__(self, worker: "AsyncWorker", address: Address, tls: ssl.SSLContext | None) -> None:
        self._worker = worker
        protocol_class = registry.worker_class(address)
        self.protocol: WorkerProtocol = protocol_class(
            address, self._lost, self, worker.name.encode(), worker.slots.total
        )
        self.protocol.slots = worker.slots
        self.protocol.tls = tls
        self.over: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        can = protocol_class.capabilities
        # Why a job of this server cannot be rescheduled; empty: it can.
        self.objection = "" if can.reschedule else str(arguments.unsupported("reschedule", registry.protocol(address)))

    @property
    def stands(self) -> bool:
        """Whether answers still reach the server."""
        return not self.over.done()

    def assigned(self, job: Assignment) -> None:
        """The server gave us a job."""
        self._worker.assigned(self, job)

    def revoked(self, job: Assignment) -> None:
        """The server took it back."""
        self._worker.revoked(job)

    def tell(self, job: Assignment, verb: str, *said: Any) -> None:
        """Pass on what a running job says, while somebody listens."""
        if self.stands:
            getattr(self.protocol, verb)(job, *said)

    async def close(self) -> None:
        """Hang up."""
        if self.stands:
            self.over.set_result(ConnectionError("the worker hung up"))
            await self.protocol.close()

    def _lost(self, error: Exception) -> None:
        if self.stands:
            self.over.set_result(error)


class ConnectionKeeper:
    """Goes on from one shift to the next, with growing pauses while the server cannot be reached."""

    def __init__(self, worker: "AsyncWorker", address: Address, tls: ssl.SSLContext | None) -> None:
        self.address = address
        self.shift: WorkerConnection | None = None  # while connected
        self.manned = asyncio.Event()  # connected, and the functions are offered
        self._worker = worker
        self._tls = tls
        self._delay = ReconnectDelay()
        self._mute = False  # that it cannot be reached has been said
        self._relieved = False  # this shift is the last

    async def keep(self) -> None:
        """Until relieved or cancelled."""
        loop = asyncio.get_running_loop()
        while not self._relieved:
            opened_at = loop.time()
            await self._hold_one_shift()
            if loop.time() - opened_at > backoff.GOOD_CONNECTION:
                self._delay.reset()
            await asyncio.sleep(self._delay.next())

    async def _hold_one_shift(self) -> None:
        shift = WorkerConnection(self._worker, self.address, self._tls)
        try:
            await shift.protocol.open(self._worker.offers())
        except CONNECTION_ERRORS as error:
            if not self._mute:
                self._mute = True
                _log.warning("%s cannot be reached, trying again: %s", self.address, error)
            return
        except Exception:  # a bug of ours must not end the worker: it tries again, and says so each time
            _log.exception("%s could not be worked for", self.address)
            await shift.close()
            return
        except BaseException:
            await shift.close()
            raise
        self.shift = shift
        self._mute = False
        if self._relieved:
            shift.protocol.stop_fetching()
        self.manned.set()
        _log.info("working for %s", self.address)
        try:
            # The other side of the shield is only ever cancelled with the whole post.
            reason = await asyncio.shield(shift.over)
            _log.warning("the connection to %s broke, coming back: %s", self.address, reason)
        finally:
            self.manned.clear()

    def relieve(self) -> None:
        """Take no more jobs from now on."""
        self._relieved = True
        if self.shift is not None and self.shift.stands:
            self.shift.protocol.stop_fetching()

    async def fetching_stopped(self) -> None:
        """After `relieve`: wait until no job can come any more."""
        if self.shift is not None and self.shift.stands:
            with contextlib.suppress(*CONNECTION_ERRORS):
                await self.shift.protocol.fetching_stopped()

    async def close(self) -> None:
        """Hang up."""
        if self.shift is not None:
            await self.shift.close()
