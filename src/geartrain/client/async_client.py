"""Submitting jobs, by whatever protocol the URL names.

    async with AsyncClient("gearman://127.0.0.1:4730") as client:
        print(await client.run("reverse", "hello"))
        job = await client.submit("report", "monday", background=True)

Many jobs can be under way at once on one connection: gather submits, or use `submit_many`. When the server goes away,
the next submission finds it again or goes to another; what was under way then is submitted again only if the caller
allows it, because it may have run already.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Final, Literal, Self, TypeVar, overload

from geartrain import address
from geartrain.client import arguments
from geartrain.client.arguments import Duration, Moment, Text
from geartrain.client.async_job import Acknowledgements, AsyncJob
from geartrain.client.job_events import Event
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import ClientProtocol
from geartrain.client.server_pool import TROUBLES, PooledServer, ServerPool
from geartrain.errors import AddressError, ClientError, ServerGoneError, UncertainError
from geartrain.model import Priority

T = TypeVar("T")

# How long a call waits for a server that cannot be reached. A restart with a large store takes some seconds.
PATIENCE: Final = 30.0
# Of `submit_many`: how many may be unanswered, and after how many (or how many bytes of payload) they leave.
_UNDER_WAY: Final = 4096
_PER_TURN: Final = 256
_BYTES_PER_TURN: Final = 1024 * 1024


class AsyncClient:
    """A client of one server, or of several that speak the same protocol."""

    def __init__(self, *urls: str, patience: float = PATIENCE, tls: ssl.SSLContext | None = None) -> None:
        places = [address.parse(url) for url in urls]
        protocols = {registry.protocol(place) for place in places}
        if len(protocols) != 1:
            raise AddressError("a client needs at least one URL, and all of the same protocol")
        self.patience = patience
        self.protocol = protocols.pop()
        self._class: type[ClientProtocol] = registry.client_class(places[0])
        self._servers = ServerPool([PooledServer(place, registry.client_class(place), tls) for place in places])
        self._open: set[AsyncJob] = set()  # those of which something is still to be heard
        self._resubmitting: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What the protocol can say."""
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
        resubmit: bool = False,
    ) -> AsyncJob:
        """Order a job; returns when the server has it. A background job is durable there by then.

        `at` or `delay` say when it may run, `timeout` how long a worker may take. `resubmit` allows that it is
        submitted again when the connection breaks before its end, though it may have run already.
        """
        order = self.order(
            function, payload, background=background, priority=priority, unique=unique, at=at, delay=delay,
            timeout=timeout,
        )  # fmt: skip
        return await self.submit_order(order, resubmit)

    async def submit_order(self, order: Order, resubmit: bool = False) -> AsyncJob:
        """The same for an order that `order` has made."""
        job = AsyncJob(self, order, resubmit)
        server = self._servers.ready(order.unique)
        if server is None or self._closed:
            server = await self._reach(order.unique)
        self._hand_over(job, server)
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
        resubmit: bool = False,
    ) -> bytes:
        """Submit a foreground job and wait for its result, at most `wait` seconds."""
        job = await self.submit(
            function, payload, priority=priority, unique=unique, timeout=timeout, resubmit=resubmit
        )  # fmt: skip
        try:
            return await job.result(wait)
        finally:
            if not job.done:
                job.forget()

    @overload
    async def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool = False, return_exceptions: Literal[False] = False
    ) -> list[AsyncJob]: ...

    @overload
    async def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool = False, return_exceptions: Literal[True]
    ) -> list[AsyncJob | Exception]: ...

    async def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool = False, return_exceptions: bool = False
    ) -> list[AsyncJob] | list[AsyncJob | Exception]:
        """Submit many orders (made by `order`) as fast as the server takes them; returns when it has all of them.

        If some are not taken, the first error is raised when all have been answered; with `return_exceptions` the
        errors stand in the list where their jobs would.
        """
        jobs: list[AsyncJob] = []
        many = Acknowledgements()
        size = count = 0
        for order in orders:
            job = AsyncJob(self, order, resubmit)
            server = self._servers.ready(order.unique)
            if server is None or self._closed:
                server = await self._reach(order.unique)
            job.count_with(many)
            self._hand_over(job, server)
            jobs.append(job)
            size += len(order.payload)
            count += 1
            if count >= _PER_TURN or size >= _BYTES_PER_TURN:
                size = count = 0
                await asyncio.sleep(0)
                if many.pending >= _UNDER_WAY:
                    await many.until(_UNDER_WAY // 2)
        await many.until(0)
        if return_exceptions:
            return [job.trouble or job for job in jobs]
        for job in jobs:
            if job.trouble is not None:
                raise job.trouble
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
    ) -> Order:
        """An order that this client's protocol can say; otherwise an UnsupportedError."""
        order = Order(
            function.encode() if type(function) is str else arguments.encoded(function),
            payload if type(payload) is bytes else arguments.encoded(payload),
            background,
            priority if type(priority) is Priority else arguments.priority(priority),
            arguments.encoded(unique) if unique else b"",
            arguments.run_at(at, delay) if at is not None or delay is not None else 0.0,
            arguments.seconds(timeout) if timeout is not None else 0.0,
        )
        arguments.check(order, self._class, self.protocol)
        return order

    def job(self, handle: Text, function: Text = b"", unique: Text = b"", server: str = "") -> AsyncJob:
        """A background job that was submitted earlier, perhaps by another program: for its status or result.

        With several servers `server` says which has it; without it, the first is asked.
        """
        servers = self._servers.servers
        known = {str(server.address): server for server in servers}
        if server and str(address.parse(server)) not in known:
            raise AddressError(f"{server} is none of this client's servers: {', '.join(known)}")
        job = AsyncJob(self, Order(arguments.encoded(function), background=True), False)
        job.pooled_server = known[str(address.parse(server))] if server else servers[0]
        job.accepted(Acceptance(arguments.encoded(handle), arguments.encoded(function), arguments.encoded(unique)))
        return job

    async def connect(self) -> None:
        """Connect now instead of at the first submission; a ServerGoneError if that cannot be done."""
        await self._reach(b"")

    async def close(self) -> None:
        """Hang up. Whoever still waits for a job gets a ClientError."""
        self._closed = True
        for task in list(self._resubmitting):
            task.cancel()
        await asyncio.gather(*self._resubmitting, return_exceptions=True)
        await self._servers.close()
        for job in list(self._open):
            job._fail(ClientError(f"the client was closed before the end of {job.function!r} was heard"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What its jobs use

    async def _status(self, job: AsyncJob) -> Status:
        return await self._ask("status", job, lambda protocol, acceptance: protocol.status(acceptance))

    async def _cancel(self, job: AsyncJob) -> bool:
        return await self._ask("cancel", job, lambda protocol, acceptance: protocol.cancel(acceptance))

    async def _result(self, job: AsyncJob) -> Event:
        return await self._ask("result_later", job, lambda protocol, acceptance: protocol.result(acceptance))

    async def _ask(
        self, capability: str, job: AsyncJob, question: Callable[[ClientProtocol, Acceptance], Awaitable[T]]
    ) -> T:
        """Ask the server that has the job; again, if the connection breaks before the answer."""
        arguments.require(capability, self.capabilities, self.protocol)
        server, acceptance = job.pooled_server, job._acceptance
        if server is None or acceptance is None:
            raise ClientError("the server has not acknowledged this job")
        while True:
            if self._closed:
                raise ClientError("the client is closed")
            if server.protocol is None:
                await ServerPool([server]).reach(b"", self.patience)
            protocol = server.protocol
            assert protocol is not None
            try:
                return await question(protocol, acceptance)
            except TROUBLES:
                if server.protocol is protocol or self._closed:
                    raise

    def _forget(self, job: AsyncJob) -> None:
        if job.pooled_server is not None and job.pooled_server.protocol is not None and job in self._open:
            job.pooled_server.protocol.forget(job)

    def _gone(self, job: AsyncJob, error: Exception) -> None:
        """The connection broke while a job was under way."""
        if job.may_be_resubmitted and not self._closed:
            task = asyncio.create_task(self._submit_again(job))
            self._resubmitting.add(task)
            task.add_done_callback(self._resubmitting.discard)
            return
        what = f"{job.function!r} at {job.server}: {error}"
        if job.order.background:
            job._fail(
                UncertainError(
                    f"the connection broke while a job was being submitted, it may be queued or not: {what}; "
                    "with a unique key, or resubmit=True, it is submitted again"
                )
            )
        else:
            job._fail(
                ServerGoneError(f"the connection broke before the end of a job: {what}; resubmit=True runs it again")
            )

    # Its own

    async def _reach(self, unique: bytes) -> PooledServer:
        if self._closed:
            raise ClientError("the client is closed")
        return await self._servers.reach(unique, self.patience)

    def _hand_over(self, job: AsyncJob, server: PooledServer) -> None:
        assert server.protocol is not None
        job.pooled_server = server
        self._open.add(job)
        server.protocol.submit(job.order, job)

    async def _submit_again(self, job: AsyncJob) -> None:
        try:
            server = await self._reach(job.order.unique)
        except ClientError as error:
            job._fail(error)
            return
        if job.trouble is None:
            self._hand_over(job, server)
