"""Run jobs of one or several servers, over the protocols that their URLs name.

    worker = AsyncWorker("gearman://127.0.0.1:4730", concurrency=10)

    @worker.function("reverse")
    async def reverse(job):
        return job.payload[::-1]

    asyncio.run(worker.run())

Coroutine functions run on the event loop; plain ones in threads, in processes, or (`mode="inline"`, for functions that
take no time) on the loop as well. After a stop, running jobs are finished; after a second stop they are given up.
"""

import asyncio
import contextlib
import inspect
import logging
import math
import os
import socket
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeVar

from geartrain import address
from geartrain.client import arguments, stop_signals
from geartrain.client.arguments import Duration, Text
from geartrain.client.credentials import credentials_for
from geartrain.client.job import Function
from geartrain.client.processes import InProcess
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import Assignment
from geartrain.client.running_jobs import RegisteredFunction, RunningJobs
from geartrain.client.slots import Slots
from geartrain.client.thread_pool import Executor, InThread
from geartrain.client.worker_connection import ConnectionKeeper, WorkerConnection
from geartrain.errors import AddressError, AuthenticationError

F = TypeVar("F", bound=Function)

MODES: Final = ("thread", "process", "inline")
_LAST_FETCH_SECONDS: Final = 5.0  # for servers to answer the last requests for jobs
# The executors of modes that use threads.
_POOLS: Final[dict[str, Callable[[], Executor]]] = {"thread": InThread, "process": InProcess}

_log = logging.getLogger("geartrain.worker")


class AsyncWorker:
    """A worker of one or several servers. Register functions, then `await run()`, or use it with `async with`.

    async with AsyncWorker("gearman://127.0.0.1:4730") as worker:
        worker.register("reverse", lambda job: job.payload[::-1])
        await asyncio.sleep(3600)
    """

    def __init__(
        self,
        *urls: str,
        concurrency: int = 1,
        prefetch: int = 0,
        name: str = "",
        mode: str = "thread",
        tracebacks: bool = False,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        """`concurrency` jobs run at once, over all servers. `mode` is for plain functions: thread, process, inline.

        `prefetch` more jobs are fetched ahead, which saves a round trip after each of many short jobs. They wait here
        even if another worker is idle, and the server's time limits count from when they were fetched.
        With `tracebacks` clients receive the traceback of a failure, not only its reason. `tls` is for a URL like
        gearmans:// if the default context (see `geartrain.client.tls`) does not fit, and `token` for a server with
        users if it is not in the environment (see `geartrain.client.credentials`). A server that does not accept it
        stops the worker with an AuthenticationError.
        """
        if not urls:
            raise AddressError("a worker needs at least one URL")
        if concurrency < 1:
            raise ValueError("a worker runs at least one job at a time")
        if prefetch < 0:
            raise ValueError("prefetch cannot be negative")
        self._addresses = [address.parse(url) for url in urls]
        for server in self._addresses:
            registry.worker_class(server)  # raises now for an unknown protocol or a missing library
        self.concurrency = concurrency
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.slots = Slots(concurrency + prefetch)
        self._mode = _checked(mode)
        # Raises now for unusable files.
        self._credentials = [credentials_for(server, tls, token) for server in self._addresses]
        self._functions: dict[bytes, RegisteredFunction] = {}
        # One for each server, and for each function with a share.
        self._keepers: list[ConnectionKeeper] = []
        self._keeper_tasks: list[asyncio.Task[None]] = []
        self._jobs = RunningJobs(self._functions, concurrency, tracebacks)
        self._stop_requests = 0
        self._refusal: AuthenticationError | None = None  # of a server; the worker ends with it
        self._refused: asyncio.Event | None = None
        self._stopping: asyncio.Event | None = None  # after the first request
        self._aborting: asyncio.Event | None = None  # after the second

    # Functions

    def register(
        self, function: Text, call: Function, *, timeout: Duration = 0.0, mode: str = "", max_share: float = 1.0
    ) -> None:
        """Run jobs of this function; may be called at any time. `timeout` is how long one of its jobs may take.

        Its jobs take at most `max_share` of the worker's slots, but at least one: with 0.5, half of `concurrency`. Such
        a function has a connection of its own to each server.
        """
        asynchronous = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
        name = arguments.encoded(function)
        limit = arguments.seconds(timeout)
        mode = "coroutine" if asynchronous else _checked(mode or self._mode)
        share = 0.0 if arguments.share(max_share) == 1.0 else max_share
        old = self._functions.get(name)
        if old is not None and old.max_share != share and self._keepers:
            raise ValueError(f"{name!r} cannot have another share of the slots while the worker runs")
        self._functions[name] = RegisteredFunction(call, limit, mode, share)
        for connection in self._open_connections(name):
            connection.protocol.register(name, limit)
        if self._keepers and share and not any(keeper.function == name for keeper in self._keepers):
            self._start_keepers(self._keepers_for(name))

    def unregister(self, function: Text) -> None:
        """Take no more jobs of this function; running ones go on."""
        name = arguments.encoded(function)
        if name in self._functions:
            for connection in self._open_connections(name):
                connection.protocol.unregister(name)
            del self._functions[name]

    def function(
        self, name: Text = "", *, timeout: Duration = 0.0, mode: str = "", max_share: float = 1.0
    ) -> Callable[[F], F]:
        """Register the decorated function; the default name is its own."""

        def decorate(call: F) -> F:
            self.register(name or getattr(call, "__name__", ""), call, timeout=timeout, mode=mode, max_share=max_share)
            return call

        return decorate

    def timeouts(self, only: bytes | None) -> dict[bytes, float]:
        """The functions to register on a connection, with their time limits: one with a share, or those without."""
        return {name: function.timeout for name, function in self._functions.items() if self._owner(name) == only}

    def _slots_of(self, function: bytes | None) -> Slots:
        """The slots of a connection: those of the worker, or the part of them for a function with a share."""
        if function is None:
            return self.slots
        # An inexact product must not cost a slot: 0.29 of 100 is 28.999999999999996.
        return self.slots.part(
            function, max(math.floor(self.concurrency * self._functions[function].max_share + 1e-9), 1)
        )

    def _owner(self, name: bytes) -> bytes | None:
        """The `function` of the connections that have a function."""
        return name if self._functions[name].max_share else None

    # Start and stop

    async def run(self, signals: bool = True) -> None:
        """Run jobs until `stop`, SIGTERM or SIGINT, then finish the running ones; `signals=False` ignores signals."""
        with stop_signals.handled(self.stop) if signals else contextlib.nullcontext():
            await self.start()
            await self.close(ask=False)

    async def start(self) -> None:
        """Begin to run jobs in the background; `ready` waits until all servers are connected."""
        if self._keeper_tasks:
            return
        self._stopping, self._aborting = asyncio.Event(), asyncio.Event()
        self._refusal, self._refused = None, asyncio.Event()
        shared = [name for name in self._functions if self._owner(name) is not None]
        self._start_keepers([keeper for name in (None, *shared) for keeper in self._keepers_for(name)])
        self._apply_stop_requests()

    def _keepers_for(self, function: bytes | None) -> list[ConnectionKeeper]:
        servers = zip(self._addresses, self._credentials, strict=True)
        slots = self._slots_of(function)
        return [ConnectionKeeper(self, server, credentials, slots, function) for server, credentials in servers]

    def _start_keepers(self, keepers: list[ConnectionKeeper]) -> None:
        for keeper in keepers:
            if self._stopping is not None and self._stopping.is_set():
                keeper.stop_fetching()
            self._keepers.append(keeper)
            self._keeper_tasks.append(asyncio.create_task(keeper.run()))

    async def ready(self) -> None:
        """Wait until the worker is connected to all its servers; an AuthenticationError if one refuses its token."""
        if self._refused is None:
            return
        refused = asyncio.create_task(self._refused.wait())
        connected = asyncio.create_task(self._all_connected())
        try:
            await asyncio.wait((refused, connected), return_when=asyncio.FIRST_COMPLETED)
            if self._refusal is not None:
                raise self._refusal
        finally:
            refused.cancel()
            connected.cancel()

    async def _all_connected(self) -> None:
        for keeper in self._keepers:
            await keeper.connected.wait()

    def stop(self) -> None:
        """Finish the running jobs and end; the second time, end at once. Other threads use `call_soon_threadsafe`."""
        self._stop_requests += 1
        self._apply_stop_requests()

    async def close(self, ask: bool = True) -> None:
        """Stop, and wait for the end; with `ask=False`, wait until `stop` is called elsewhere.

        An AuthenticationError if the worker stopped because a server did not accept its token.
        """
        if not self._keeper_tasks:
            return
        assert self._stopping is not None
        assert self._aborting is not None
        if ask:
            self.stop()
        try:
            await self._stopping.wait()
            finishing = asyncio.create_task(self._finish())
            aborting = asyncio.create_task(self._aborting.wait())
            await asyncio.wait((finishing, aborting), return_when=asyncio.FIRST_COMPLETED)
            for task in (finishing, aborting):
                task.cancel()
            await asyncio.gather(finishing, aborting, return_exceptions=True)
        finally:
            await self._end()
        if self._refusal is not None:
            raise self._refusal

    async def __aenter__(self) -> Self:
        await self.start()
        try:
            await self.ready()
        except BaseException:
            with contextlib.suppress(AuthenticationError):
                await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Called by the connections

    def refused(self, error: AuthenticationError) -> None:
        """A server does not accept the token: stop, since that does not change by itself."""
        self._refusal = self._refusal or error
        if self._refused is not None:
            self._refused.set()
        self.stop()

    def assigned(self, connection: WorkerConnection, assignment: Assignment) -> None:
        """A server assigned a job to this worker."""
        self._jobs.assigned(connection, assignment)

    def revoked(self, assignment: Assignment) -> None:
        """A server took a job back."""
        self._jobs.revoked(assignment)

    # Stopping

    async def _finish(self) -> None:
        """Fetch no more jobs, and wait for the running ones."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_FETCH_SECONDS):
                await asyncio.gather(*(keeper.fetching_stopped() for keeper in self._keepers))
        await self._jobs.finished()

    async def _end(self) -> None:
        """Give up jobs that still run, close the connections, and end threads and processes."""
        for task in self._keeper_tasks:
            task.cancel()
        await asyncio.gather(*self._keeper_tasks, return_exceptions=True)
        aborted = bool(self._jobs)
        await asyncio.gather(*self._jobs.give_up(), return_exceptions=True)
        for keeper in self._keepers:
            await keeper.close()
        await self._jobs.close(aborted)
        self._keeper_tasks, self._keepers = [], []
        self._stop_requests = 0

    def _apply_stop_requests(self) -> None:
        if self._stopping is not None and self._aborting is not None:
            if self._stop_requests > 0 and not self._stopping.is_set():
                self._stopping.set()
                for keeper in self._keepers:
                    keeper.stop_fetching()
                _log.info("stopping after %d running jobs", len(self._jobs))
            if self._stop_requests > 1:
                self._aborting.set()

    def _open_connections(self, function: bytes) -> list[WorkerConnection]:
        """Those that have a function."""
        owner = self._owner(function)
        keepers = [keeper for keeper in self._keepers if keeper.function == owner]
        return [keeper.open_connection for keeper in keepers if keeper.open_connection is not None]


def _checked(mode: str) -> str:
    if mode not in MODES:
        raise ValueError(f"{mode!r} is no mode; use {', '.join(MODES)}")
    return mode
