"""The transport to real servers, by the client library."""

import dataclasses
import itertools
import operator
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from geartrain import address, failure_reasons
from geartrain.app.call import Call
from geartrain.app.node import WorkflowNode
from geartrain.app.transport import SubmittedJob, SubmittedWorkflow, Transport
from geartrain.client import arguments
from geartrain.client.async_client import AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.client.job_events import Event
from geartrain.client.order import Order, Status
from geartrain.client.protocols import registry
from geartrain.client.workflow import AsyncWorkflow, MemberOrder, WorkflowProgress
from geartrain.errors import JobFailedError
from geartrain.model import Priority


class ServerJob(SubmittedJob):
    """A job on a server."""

    __slots__ = ("_job",)

    def __init__(self, job: AsyncJob) -> None:
        self._job = job

    @property
    def handle(self) -> bytes:
        return self._job.handle.encode("utf-8", "surrogateescape")

    @property
    def server(self) -> str:
        return self._job.server

    async def result(self, timeout: float | None) -> bytes:
        """Wait for the result. Of a traceback that the worker sent only the last line is the reason."""
        try:
            return await self._job.result(timeout)
        except JobFailedError as error:
            if not failure_reasons.has_traceback(error.reason):
                raise
            reason = failure_reasons.summary(error.reason)
            raise JobFailedError(f"{self._job!r} failed: {reason}", reason, error.code, reason.encode()) from None

    async def status(self) -> Status:
        return await self._job.status()

    async def log(self) -> str:
        return (await self._job.log()).decode("utf-8", "replace")

    async def cancel(self) -> bool:
        return await self._job.cancel()

    def events(self) -> AsyncIterator[Event]:
        return self._job.events()


class ServerWorkflow(SubmittedWorkflow):
    """A workflow on a server."""

    def __init__(self, workflow: AsyncWorkflow) -> None:
        self._workflow = workflow
        self._jobs = [ServerJob(job) for job in workflow.jobs]

    @property
    def handle(self) -> bytes:
        return self._workflow.handle.encode("utf-8", "surrogateescape")

    @property
    def server(self) -> str:
        return self._workflow.job.server

    @property
    def jobs(self) -> Sequence[SubmittedJob]:
        return self._jobs

    async def wait(self, timeout: float | None) -> str:
        return await self._workflow.wait(timeout)

    async def progress(self) -> WorkflowProgress:
        return await self._workflow.progress()

    async def cancel(self) -> bool:
        return await self._workflow.cancel()

    async def retry(self) -> bool:
        return await self._workflow.retry()


class ServerTransport(Transport):
    """A client of the library."""

    def __init__(
        self, urls: Sequence[str], tls: ssl.SSLContext | None, token: str | None, cluster: bool = False
    ) -> None:
        self.client = AsyncClient(*urls, cluster=cluster, tls=tls, token=token)
        self._protocol = registry.client_class(address.parse(urls[0]))
        self._allowed: set[tuple[bytes, bool, Priority]] = set()  # plain calls that the protocol supports

    async def submit(self, call: Call[Any]) -> SubmittedJob:
        return ServerJob(await self.client.submit_order(self._order(call), call.resubmit))

    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[SubmittedJob]:
        submitted: list[SubmittedJob] = []
        for resubmit, group in itertools.groupby(calls, operator.attrgetter("resubmit")):
            jobs = await self.client.submit_many(map(self._order, group), resubmit=resubmit)
            submitted += [ServerJob(job) for job in jobs]
        return submitted

    async def submit_workflow(self, name: str, nodes: Sequence[WorkflowNode[Any]]) -> SubmittedWorkflow:
        members = [
            MemberOrder(dataclasses.replace(node.call.order(), runs_anyway=node.runs_anyway), node.after)
            for node in nodes
        ]
        return ServerWorkflow(await self.client.submit_members(name, members))

    def workflow(self, handle: bytes, server: str) -> SubmittedWorkflow:
        return ServerWorkflow(self.client.workflow(handle, server))

    def job(self, handle: bytes, function: bytes, server: str) -> SubmittedJob:
        return ServerJob(self.client.job(handle, function, server=server))

    async def close(self) -> None:
        await self.client.close()

    def _order(self, call: Call[Any]) -> Order:
        """The library's order for a call; UnsupportedError if the protocol does not support it."""
        order = call.order()
        # Nothing else of a plain call can be unsupported, so equal plain calls are checked once.
        special = order.unique or order.run_at or order.expires_at or order.keep_for or order.partition or order.after
        plain = None if special else (order.function, order.background, order.priority)
        if plain is None or plain not in self._allowed:
            arguments.check(order, self._protocol, self.client.protocol)
            if plain is not None:
                self._allowed.add(plain)
        return order
