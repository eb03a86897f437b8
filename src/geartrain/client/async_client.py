"""Submit jobs, over the protocol that the URL names.

    async with AsyncClient("gearman://127.0.0.1:4730") as client:
        print(await client.run("reverse", "hello"))
        job = await client.submit("report", "monday", background=True)

Many jobs can be under way on one connection: gather several calls of `submit`, or use `submit_many`. When the server
goes away, the next submission reconnects or goes to another server. A job that was under way is submitted again only if
the caller allows it, because it may have run already.
"""

import asyncio
import ssl
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final, Literal, Self, overload

from geartrain import address
from geartrain.client import arguments, workflow
from geartrain.client.arguments import Duration, Lifetime, Moment, OnFailure, Text, Waitable
from geartrain.client.async_job import AsyncJob, UnacknowledgedCount
from geartrain.client.credentials import credentials_for
from geartrain.client.order import Acceptance, Capabilities, Order
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import ClientProtocol
from geartrain.client.server_pool import PooledServer, ServerPool
from geartrain.client.submissions import Submissions
from geartrain.client.workflow import AsyncWorkflow, MemberOrder, WorkflowJob
from geartrain.errors import AddressError
from geartrain.model import Priority

# Seconds that a call waits for a server that cannot be reached. A restart with a large store takes some seconds.
DEFAULT_PATIENCE: Final = 30.0
# `submit_many` lets the loop send after this many jobs or bytes of payload, and waits when too many are unacknowledged.
_MOST_UNACKNOWLEDGED: Final = 4096
_JOBS_PER_WRITE: Final = 256
_BYTES_PER_WRITE: Final = 1024 * 1024


class AsyncClient:
    """A client of one server, or of several that speak the same protocol.

        async with AsyncClient("gearman://127.0.0.1:4730") as client:
            print(await client.run("reverse", "hello"))

    A call waits up to `patience` seconds for a server that cannot be reached. With `cluster`, the servers are those of
    one cluster: another one is asked about a job whose server cannot be reached. `tls` is for a URL like gearmans://
    if the default context (see `geartrain.client.tls`) does not fit, and `token` for a server with users if it is
    not in the environment (see `geartrain.client.credentials`). A server that does not accept it is an
    AuthenticationError.
    """

    def __init__(
        self,
        *urls: str,
        patience: float = DEFAULT_PATIENCE,
        cluster: bool = False,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        addresses = [address.parse(url) for url in urls]
        protocols = {registry.protocol(address) for address in addresses}
        if len(protocols) != 1:
            raise AddressError("a client needs at least one URL, and all of the same protocol")
        self.protocol = protocols.pop()  # its name
        self._class: type[ClientProtocol] = registry.client_class(addresses[0])
        self._servers = ServerPool(
            [
                PooledServer(address, registry.client_class(address), credentials_for(address, tls, token))
                for address in addresses
            ]
        )
        self._submissions = Submissions(self._servers, self.protocol, self.capabilities, patience, cluster)

    @property
    def patience(self) -> float:
        """Seconds that a call waits for a server that cannot be reached."""
        return self._submissions.patience

    @property
    def capabilities(self) -> Capabilities:
        """What the protocol supports."""
        return self._class.capabilities

    async def submit(
        self,
        function: Text,
        payload: Text = b"",
        *,
        background: bool = False,
        priority: Priority | str = Priority.NORMAL,
        unique: Text = b"",
        at: Moment | None = None,
        delay: Duration | None = None,
        timeout: Duration | None = None,
        expires: Lifetime | None = None,
        keep_for: Duration | None = None,
        partition: Text = b"",
        after: Iterable[Waitable] = (),
        on_failure: OnFailure = "cancel",
        resubmit: bool = False,
    ) -> AsyncJob:
        """Submit a job; returns when the server has acknowledged it. A background job is durable there then.

        `at` or `delay` say when it may run, `timeout` how long a worker may take. No worker gets it after it `expires`,
        a time from now or a datetime: then its result is an ExpiredError. The server keeps the result of a background
        job for the time `keep_for` at least. Partitions of a function take turns; a `partition` is the name of a
        tenant, an account or a host. It runs `after` others, which are background jobs of the same server or their
        handles; if one of them fails, is cancelled or expires, it is cancelled, or runs with `on_failure="run"`. With
        `resubmit` the job is submitted again when the connection breaks before it ended, even though it may have run
        already.
        """
        order = self.order(
            function, payload, background=background, priority=priority, unique=unique, at=at, delay=delay,
            timeout=timeout, expires=expires, keep_for=keep_for, partition=partition, after=after,
            on_failure=on_failure,
        )  # fmt: skip
        return await self.submit_order(order, resubmit)

    async def submit_order(self, order: Order, resubmit: bool = False) -> AsyncJob:
        """Submit an order that was made by `order`."""
        submissions = self._submissions
        job = AsyncJob(submissions, order, resubmit)
        server = self._servers.ready(order.unique)
        if server is None or submissions.closed:
            server = await submissions.reach(order.unique)
        submissions.hand_over(job, server)
        try:
            await job.acknowledged()
        except asyncio.CancelledError:
            job.forget()
            raise
        return job

    async def run(
        self,
        function: Text,
        payload: Text = b"",
        *,
        wait: float | None = None,
        priority: Priority | str = Priority.NORMAL,
        unique: Text = b"",
        timeout: Duration | None = None,
        partition: Text = b"",
        resubmit: bool = False,
    ) -> bytes:
        """Submit a foreground job and wait for its result, at most `wait` seconds."""
        job = await self.submit(
            function, payload, priority=priority, unique=unique, timeout=timeout, partition=partition,
            resubmit=resubmit,
        )  # fmt: skip
        try:
            return await job.result(wait)
        finally:
            if not job.done:
                job.forget()

    async def submit_workflow(self, name: str, jobs: Iterable[WorkflowJob]) -> AsyncWorkflow:
        """Submit many background jobs at once, all of them or none; returns when all are durable at the server.

        A job runs `after` others of the list, which it names by their places. The workflow is a job itself, which ends
        when all of them have ended.
        """
        return await self.submit_members(name, [workflow.member(job) for job in jobs])

    async def submit_members(self, name: str, members: Sequence[MemberOrder]) -> AsyncWorkflow:
        """Submit the members of a workflow."""
        arguments.require("after", self.capabilities, self.protocol)
        server, answer = await self._submissions.submit_workflow(workflow.request(name, members))
        job = self._accepted(Order(workflow.FUNCTION, background=True), answer["handle"], server)
        return AsyncWorkflow(
            self._submissions,
            job,
            [
                self._accepted(member.order, handle, server)
                for member, handle in zip(members, answer["jobs"], strict=True)
            ],
        )

    @overload
    async def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool | None = False, return_exceptions: Literal[False] = False
    ) -> list[AsyncJob]: ...

    @overload
    async def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool | None = False, return_exceptions: Literal[True]
    ) -> list[AsyncJob | Exception]: ...

    async def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool | None = False, return_exceptions: bool = False
    ) -> list[AsyncJob] | list[AsyncJob | Exception]:
        """Submit many orders (made by `order`) as fast as the server takes them; returns when all are acknowledged.

        If some fail, the first error is raised after all have been answered; with `return_exceptions` the errors
        stand in the list in place of their jobs. With `resubmit=None` no job is submitted again when the connection
        breaks, not even one with a unique key that was not acknowledged: it may have run and ended.
        """
        submissions = self._submissions
        jobs: list[AsyncJob] = []
        unacknowledged = UnacknowledgedCount()
        size = count = 0
        for order in orders:
            job = AsyncJob(submissions, order, resubmit)
            server = self._servers.ready(order.unique)
            if server is None or submissions.closed:
                server = await submissions.reach(order.unique)
            job.count_in(unacknowledged)
            submissions.hand_over(job, server)
            jobs.append(job)
            size += len(order.payload)
            count += 1
            if count >= _JOBS_PER_WRITE or size >= _BYTES_PER_WRITE:
                size = count = 0
                await asyncio.sleep(0)
                if unacknowledged.count >= _MOST_UNACKNOWLEDGED:
                    await unacknowledged.at_most(_MOST_UNACKNOWLEDGED // 2)
        await unacknowledged.at_most(0)
        if return_exceptions:
            return [job.error or job for job in jobs]
        for job in jobs:
            if job.error is not None:
                raise job.error
        return jobs

    def order(
        self,
        function: Text,
        payload: Text = b"",
        *,
        background: bool = False,
        priority: Priority | str = Priority.NORMAL,
        unique: Text = b"",
        at: Moment | None = None,
        delay: Duration | None = None,
        timeout: Duration | None = None,
        expires: Lifetime | None = None,
        keep_for: Duration | None = None,
        partition: Text = b"",
        after: Iterable[Waitable] = (),
        on_failure: OnFailure = "cancel",
    ) -> Order:
        """Make an order for `submit_many`; an UnsupportedError if the protocol cannot express it."""
        order = Order(
            function.encode() if type(function) is str else arguments.encoded(function),
            payload if type(payload) is bytes else arguments.encoded(payload),
            background,
            priority if type(priority) is Priority else arguments.priority(priority),
            arguments.encoded(unique) if unique else b"",
            arguments.run_at(at, delay) if at is not None or delay is not None else 0.0,
            arguments.seconds(timeout) if timeout is not None else 0.0,
        )
        if expires is not None:
            order.expires_at = arguments.expires_at(expires, order.run_at, time.time())
        if keep_for is not None:
            order.keep_for = arguments.keep_for(keep_for, background)
        if partition:
            order.partition = arguments.partition(partition)
        if after:
            if len(self._servers.servers) > 1:
                raise ValueError("jobs that wait for others need a client of the one server that has all of them")
            order.after, order.runs_anyway = arguments.parents(after), arguments.runs_anyway(on_failure)
        arguments.check(order, self._class, self.protocol)
        return order

    def job(self, handle: Text, function: Text = b"", unique: Text = b"", server: str = "") -> AsyncJob:
        """A background job that was submitted earlier, perhaps by another program: for its status or result.

        With several servers `server` is the URL of the one that has it; the default is the first.
        """
        servers = {str(pooled.address): pooled for pooled in self._servers.servers}
        url = str(address.parse(server)) if server else next(iter(servers))
        if url not in servers:
            raise AddressError(f"{server} is none of this client's servers: {', '.join(servers)}")
        order = Order(arguments.encoded(function), unique=arguments.encoded(unique), background=True)
        return self._accepted(order, handle, servers[url])

    def workflow(self, handle: Text, server: str = "") -> AsyncWorkflow:
        """A workflow that was submitted earlier, perhaps by another program, by its handle."""
        return AsyncWorkflow(self._submissions, self.job(handle, workflow.FUNCTION, server=server))

    def _accepted(self, order: Order, handle: Text, server: PooledServer) -> AsyncJob:
        """A background job that a server has."""
        job = AsyncJob(self._submissions, order, False)
        job.assigned_to = server
        job.accepted(Acceptance(arguments.encoded(handle), order.function, order.unique))
        return job

    async def connect(self) -> None:
        """Connect now instead of at the first submission; a ServerGoneError if no server can be reached."""
        await self._submissions.reach(b"")

    async def connection(self) -> ClientProtocol:
        """An open connection to a server, for what only its protocol can do; a ServerGoneError if there is none."""
        server = await self._submissions.reach(b"")
        return await server.open()

    async def close(self) -> None:
        """Close every connection. Whoever still waits for a job gets a ClientError."""
        await self._submissions.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
