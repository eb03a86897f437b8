"""Calls that go to real servers, by the client library."""

import itertools
import operator
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from geartrain import address
from geartrain.app.call import Call
from geartrain.app.server_control import JobName, ServerControl
from geartrain.app.transport import Remote, Transport
from geartrain.client import arguments
from geartrain.client.async_client import AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.client.job_events import Event
from geartrain.client.order import Order, Status
from geartrain.client.protocols import registry
from geartrain.model import Priority


class ServerRemote(Remote):
    """A job on a server."""

    __slots__ = ("_job", "_transport")

    def __init__(self, transport: "ServerTransport", job: AsyncJob) -> None:
        self._transport = transport
        self._job = job

    @property
    def handle(self) -> bytes:
        return self._job.handle.encode("utf-8", "surrogateescape")

    async def result(self, timeout: float | None) -> bytes:
        """The protocol's own way if it has one; otherwise a server of ours can be asked."""
        job = self._job
        if job.background and not self._transport.client.capabilities.result_later:
            steering = self._transport.steering(job.server)
            name = JobName(job.order.function, self.handle, job.unique.encode("utf-8", "surrogateescape"))
            if name.says_something and await steering.available():
                return await steering.result(name, timeout)
        return await job.result(timeout)

    async def status(self) -> Status:
        return await self._job.status()

    async def cancel(self) -> bool:
        return await self._job.cancel()

    def events(self) -> AsyncIterator[Event]:
        return self._job.events()


class ServerTransport(Transport):
    """The library's client, and one more connection to each server that is asked about its jobs."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.client = AsyncClient(*urls)
        self._link = registry.client_class(address.parse(urls[0]))
        self._steering: dict[str, ServerControl] = {}
        self._allowed: set[tuple[bytes, bool, Priority]] = set()  # kinds of plain calls that the protocol can say

    async def submit(self, call: Call[Any]) -> Remote:
        return ServerRemote(self, await self.client.submit_order(self._order(call), call.resubmit))

    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[Remote]:
        remotes: list[Remote] = []
        for resubmit, alike in itertools.groupby(calls, operator.attrgetter("resubmit")):
            jobs = await self.client.submit_many(map(self._order, alike), resubmit=resubmit)
            remotes += [ServerRemote(self, job) for job in jobs]
        return remotes

    async def close(self) -> None:
        for steering in self._steering.values():
            await steering.close()
        await self.client.close()

    def steering(self, url: str) -> ServerControl:
        """Whom to ask about jobs on this server."""
        found = self._steering.get(url)
        if found is None:
            found = self._steering[url] = ServerControl(url)
        return found

    def _order(self, call: Call[Any]) -> Order:
        """An order that the protocol can say; an UnsupportedError if it cannot."""
        order = Order(
            call.task.function_name, call.payload(), call.background, call.priority, call.unique, call.run_at
        )  # fmt: skip
        # Nothing else of a plain call can be refused, so the protocol is asked once for all that are alike.
        plain = (order.function, order.background, order.priority) if not (order.unique or order.run_at) else None
        if plain is None or plain not in self._allowed:
            arguments.check(order, self._link, self.client.protocol)
            if plain is not None:
                self._allowed.add(plain)
        return order
