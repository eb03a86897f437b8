"""The jobs of a client that are not over, and the servers that have them.

`AsyncClient` submits jobs here, and an `AsyncJob` comes back here for everything that needs its server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from geartrain.client import arguments
from geartrain.client.async_job import AsyncJob
from geartrain.client.job_control import JobControl
from geartrain.client.job_events import Event
from geartrain.client.order import Acceptance, Capabilities, Status
from geartrain.client.protocols.base import ClientProtocol
from geartrain.client.server_pool import CONNECTION_ERRORS, PooledServer, ServerPool
from geartrain.errors import (
    AdminError,
    ClientError,
    JobTimeoutError,
    RefusedError,
    ResultGoneError,
    ServerGoneError,
    UncertainError,
    UnsupportedError,
)

T = TypeVar("T")

# In a cluster, for so long a job of a server that is gone may be unknown to the others. Longer than the default lease.
_TAKEOVER_SECONDS: Final = 15.0
_PAUSE_SECONDS: Final = 0.2


class Submissions:
    """Hands jobs to servers, submits them again when a connection breaks, and asks their servers about them."""

    def __init__(
        self, servers: ServerPool, protocol: str, capabilities: Capabilities, patience: float, cluster: bool = False
    ) -> None:
        self.servers = servers
        self.protocol = protocol  # its name
        self.capabilities = capabilities
        self.patience = patience  # seconds that a call waits for a server
        self.cluster = cluster  # the servers share their jobs
        self.closed = False
        self._open: set[AsyncJob] = set()  # whose last event has not arrived
        self._submitting: set[asyncio.Task[None]] = set()
        self._control = JobControl(self)

    async def reach(self, unique: bytes) -> PooledServer:
        """Connect to a server for a job with this unique key."""
        if self.closed:
            raise ClientError("the client is closed")
        return await self.servers.reach(unique, self.patience)

    def hand_over(self, job: AsyncJob, server: PooledServer) -> None:
        """Submit a job to a connected server."""
        assert server.protocol is not None
        job.assigned_to = server
        self._open.add(job)
        if server.protocol.needs_control(job.order):
            self._start(self._submit_by_control(job, server))
        else:
            server.protocol.submit(job.order, job)

    async def submit_workflow(self, request: dict[str, Any]) -> tuple[PooledServer, dict[str, Any]]:
        """Submit jobs that belong together; returns the server that has them, and its answer."""
        server = await self.reach(b"")
        protocol = _open_protocol(server)
        try:
            if protocol.has_workflows:
                return server, await protocol.submit_workflow(request)
            return server, await self._control.submit_workflow(server, request)
        except AdminError as error:
            raise RefusedError(f"{server.address} refused: {error.text}") from None
        except (ServerGoneError, JobTimeoutError) as error:
            raise UncertainError(
                f"{server.address} did not acknowledge workflow {request['name']!r}: all of its jobs may be there, or "
                f"none: {error}"
            ) from error

    async def close(self) -> None:
        """Close every connection; calls that wait for a job raise a ClientError."""
        self.closed = True
        for task in list(self._submitting):
            task.cancel()
        await asyncio.gather(*self._submitting, return_exceptions=True)
        await self.servers.close()
        for job in list(self._open):
            job.give_up(ClientError(f"the client was closed before the job of {job.function!r} ended"))

    # Called by jobs

    def over(self, job: AsyncJob) -> None:
        """No more events are expected of this job."""
        self._open.discard(job)

    def forget(self, job: AsyncJob) -> None:
        """Tell the server, where the protocol can, that this client no longer waits for a job."""
        if job.assigned_to is not None and job.assigned_to.protocol is not None and job in self._open:
            job.assigned_to.protocol.forget(job)

    def connection_lost(self, job: AsyncJob, error: Exception) -> None:
        """Submit the job again if its caller allows that; otherwise its waiters get an error."""
        if job.may_be_resubmitted and not self.closed:
            self._start(self._resubmit(job))
            return
        what = f"{job.function!r} at {job.server}: {error}"
        if job.order.background:
            job.give_up(
                UncertainError(
                    f"the connection broke during a submission, the job may be queued or not: {what}; "
                    "with a unique key, or resubmit=True, it is submitted again"
                )
            )
        else:
            job.give_up(
                ServerGoneError(f"the connection broke before the job ended: {what}; resubmit=True submits it again")
            )

    async def status(self, job: AsyncJob) -> Status:
        """Ask the server that has the job for its status."""

        async def ask(server: PooledServer, acceptance: Acceptance) -> Status:
            protocol = _open_protocol(server)
            if not protocol.has_states and await self._control.knows(server):
                return await self._control.status(server, acceptance)
            arguments.require("status", self.capabilities, self.protocol)
            return await protocol.status(acceptance)

        return await self._ask(job, ask, lambda status: not status.known and status.state == "unknown")

    async def log(self, job: AsyncJob) -> bytes:
        """Ask the server that has the job for what its workers have logged."""

        async def ask(server: PooledServer, acceptance: Acceptance) -> bytes:
            if not await self._control.knows(server):
                raise UnsupportedError(f"{server.address} is no Geartrain: it keeps no logs of jobs")
            return await self._control.log(server, acceptance)

        return await self._ask(job, ask)

    async def cancel(self, job: AsyncJob) -> bool:
        """Ask the server that has the job to cancel it."""

        async def ask(server: PooledServer, acceptance: Acceptance) -> bool:
            if not self.capabilities.cancel and await self._control.knows(server):
                return await self._control.cancel(server, acceptance)
            arguments.require("cancel", self.capabilities, self.protocol)
            return await _open_protocol(server).cancel(acceptance)

        return await self._ask(job, ask, lambda cancelled: not cancelled)

    async def retry(self, job: AsyncJob) -> bool:
        """Ask the server that has the job to run it again."""

        async def ask(server: PooledServer, acceptance: Acceptance) -> bool:
            if not await self._control.knows(server):
                raise UnsupportedError(f"{server.address} is no Geartrain: it does not retry jobs")
            return await self._control.retry(server, acceptance)

        return await self._ask(job, ask)

    async def workflow(self, job: AsyncJob) -> dict[str, Any]:
        """Ask the server that has a workflow for its view of it."""
        return await self._ask(job, self._control.workflow)

    async def result(self, job: AsyncJob) -> Event:
        """Wait for the end of a background job."""

        async def ask(server: PooledServer, acceptance: Acceptance) -> Event:
            if not _open_protocol(server).can_follow(acceptance) and await self._control.knows(server):
                return await self._control.result(server, acceptance)
            arguments.require("result_later", self.capabilities, self.protocol)
            return await _open_protocol(server).result(acceptance)

        return await self._ask(job, ask)

    async def events(self, job: AsyncJob) -> AsyncIterator[Event]:
        """The events of a background job from now on."""

        async def ask(server: PooledServer, acceptance: Acceptance) -> AsyncIterator[Event]:
            if _open_protocol(server).can_follow(acceptance):
                return _open_protocol(server).events(acceptance)
            if await self._control.knows(server):
                return self._control.events(server, acceptance)
            raise UnsupportedError(f"{server.address} is no Geartrain: it has no events of background jobs")

        async for event in await self._ask(job, ask):
            yield event

    async def _ask(
        self,
        job: AsyncJob,
        question: Callable[[PooledServer, Acceptance], Awaitable[T]],
        is_unknown: Callable[[T], bool] = lambda _: False,
    ) -> T:
        """The answer of the server that has the job; asked again if the connection breaks before the answer.

        In a cluster another server is asked if that one cannot be reached. It may take a moment until one has taken
        over its jobs: until then they say that they do not know the job.
        """
        home, acceptance = job.assigned_to, job.acceptance
        if home is None or acceptance is None:
            raise ClientError("the server has not acknowledged this job")
        loop = asyncio.get_running_loop()
        known_by = loop.time() + _TAKEOVER_SECONDS
        server = home
        while True:
            if self.closed:
                raise ClientError("the client is closed")
            if server.protocol is None:
                pool = self.servers.beginning_with(server) if self.cluster else ServerPool([server])
                server = await pool.reach(b"", self.patience)
            protocol = server.protocol
            is_certain = server is home or not self.cluster or loop.time() > known_by
            try:
                answer = await question(server, acceptance)
                if is_certain or not is_unknown(answer):
                    return answer
            except (*CONNECTION_ERRORS, AdminError) as error:
                if isinstance(error, UnsupportedError) or self.closed:
                    raise
                is_away = _is_away(error) and self.cluster and loop.time() <= known_by
                is_unsure = isinstance(error, ResultGoneError) and not is_certain
                if server.protocol is protocol and not (is_away or is_unsure):
                    raise
            if server.protocol is protocol:
                await asyncio.sleep(_PAUSE_SECONDS)
                server = self.servers.after(server)

    def _start(self, submission: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(submission)
        self._submitting.add(task)
        task.add_done_callback(self._submitting.discard)

    async def _submit_by_control(self, job: AsyncJob, server: PooledServer) -> None:
        """Submit a job whose order the protocol cannot express."""
        try:
            job.accepted(await self._control.submit(server, job.order))
        except AdminError as error:
            job.refused(RefusedError(f"{server.address} refused: {error.text}"))
        except ServerGoneError as error:
            job.gone(error)
        except JobTimeoutError:
            text = f"{server.address} did not acknowledge the job of {job.function!r} in time: it may be queued or not"
            job.refused(UncertainError(text))
        except ClientError as error:
            job.refused(error)

    async def _resubmit(self, job: AsyncJob) -> None:
        try:
            server = await self.reach(job.order.unique)
        except ClientError as error:
            job.give_up(error)
            return
        if job.error is None:
            self.hand_over(job, server)


def _is_away(error: Exception) -> bool:
    """Whether the server that has a job, or the one that was asked, stops or does not answer."""
    return isinstance(error, ServerGoneError) or (isinstance(error, AdminError) and error.kind == "unavailable")


def _open_protocol(server: PooledServer) -> ClientProtocol:
    if server.protocol is None:
        raise ServerGoneError(f"the connection to {server.address} was lost")
    return server.protocol
