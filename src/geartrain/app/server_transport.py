"""The transport to real servers, by the client library."""

import itertools
import operator
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from geartrain import address
from geartrain.app.call import Call
from geartrain.app.server_control import JobReference, ServerControl
from geartrain.app.transport import SubmittedJob, Transport
from geartrain.client import arguments
from geartrain.client.async_client import AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.client.job_events import Event
from geartrain.client.order import Order, Status
from geartrain.client.protocols import registry
from geartrain.model import Priority


class ServerJob(SubmittedJob):
    """A job on a server."""

    __slots__ = ("_job", "_transport")

    def __init__(self, transport: "ServerTransport", job: AsyncJob) -> None:
        self._transport = transport
        self._job = job

    @property
    def handle(self) -> bytes:
        return self._job.handle.encode("utf-8", "surrogateescape")

    async def result(self, timeout: float | None) -> bytes:
        """Ask by the protocol if it can, otherwise by a control job."""
        job = self._job
        if job.background and not self._transport.client.capabilities.result_later:
            control = self._transport.control(job.server)
            reference = JobReference(job.order.function, self.handle, job.unique.encode("utf-8", "surrogateescape"))
            if reference.identifies_job and await control.available():
                return await control.result(reference, timeout)
        return await job.result(timeout)

    async def status(self) -> Status:
        return await self._job.status()

    async def cancel(self) -> bool:
        return await self._job.cancel()

    def events(self) -> AsyncIterator[Event]:
        return self._job.events()


class ServerTransport(Transport):
    """A client of the library, and one more connection to each server that gets control jobs."""

    def __init__(self, urls: Sequence[str], tls: ssl.SSLContext | None, token: str | None) -> None:
        self.client = AsyncClient(*urls, tls=tls, token=token)
        self._tls = tls
        self._token = token
        self._protocol = registry.client_class(address.parse(urls[0]))
        self._controls: dict[str, ServerControl] = {}
        self._allowed: set[tuple[bytes, bool, Priority]] = set()  # plain calls that the protocol supports

    async def submit(self, call: Call[Any]) -> SubmittedJob:
        return ServerJob(self, await self.client.submit_order(self._order(call), call.resubmit))

    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[SubmittedJob]:
        submitted: list[SubmittedJob] = []
        for resubmit, group in itertools.groupby(calls, operator.attrgetter("resubmit")):
            jobs = await self.client.submit_many(map(self._order, group), resubmit=resubmit)
            submitted += [ServerJob(self, job) for job in jobs]
        return submitted

    async def close(self) -> None:
        for control in self._controls.values():
            await control.close()
        await self.client.close()

    def control(self, url: str) -> ServerControl:
        """The control of one server, connected at its first use."""
        control = self._controls.get(url)
        if control is None:
            control = self._controls[url] = ServerControl(url, self._tls, self._token)
        return control

    def _order(self, call: Call[Any]) -> Order:
        """The library's order for a call; UnsupportedError if the protocol does not support it."""
        order = Order(
            function=call.task.function_name,
            payload=call.payload(),
            background=call.background,
            priority=call.priority,
            unique=call.unique,
            run_at=call.run_at,
            expires_at=call.expires_at,
            keep_for=call.keep_for,
        )
        # Nothing else of a plain call can be unsupported, so equal plain calls are checked once.
        special = order.unique or order.run_at or order.expires_at or order.keep_for
        plain = None if special else (order.function, order.background, order.priority)
        if plain is None or plain not in self._allowed:
            arguments.check(order, self._protocol, self.client.protocol)
            if plain is not None:
                self._allowed.add(plain)
        return order
