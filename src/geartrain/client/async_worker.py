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
import functools
import inspect
import logging
import os
import signal
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from geartrain import address
from geartrain.client import arguments, execution
from geartrain.client.arguments import Duration, Text
from geartrain.client.execution import JobOutcome
from geartrain.client.job import Function, Job, JobDetails
from geartrain.client.processes import InProcess
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import Assignment
from geartrain.client.slots import Slots
from geartrain.client.thread_pool import Executor, InThread, ThreadPool
from geartrain.client.tls import context_for
from geartrain.client.worker_connection import ConnectionKeeper, WorkerConnection
from geartrain.errors import AddressError

F = TypeVar("F", bound=Function)

MODES: Final = ("thread", "process", "inline")
_LAST_FETCH_SECONDS: Final = 5.0  # for servers to answer the last requests for jobs
# The executors of modes that use threads.
_POOLS: Final[dict[str, Callable[[], Executor]]] = {"thread": InThread, "process": InProcess}
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger("geartrain.worker")


class RegisteredFunction(NamedTuple):
    """A function that a worker runs."""

    call: Function
    timeout: float  # seconds a job may take; 0: no limit
    mode: str  # "coroutine" or one of MODES


class RunningJob:
    """A job that runs, and the connection that it came from."""

    __slots__ = ("assignment", "connection", "job", "task")

    def __init__(self, connection: WorkerConnection, assignment: Assignment, pool: ThreadPool | None) -> None:
        self.connection = connection
        self.assignment = assignment
        # A report from another thread must neither overtake the job's end nor be overtaken by it.
        report = functools.partial(pool.call_on_loop, self._report) if pool is not None else self._report
        self.job = Job(
            JobDetails(
                assignment.payload,
                assignment.function,
                assignment.handle,
                assignment.unique,
                connection.no_reschedule,
            ),
            report,
        )
        self.task: asyncio.Task[None] | None = None  # of a coroutine function

    def _report(self, kind: str, *values: Any) -> None:
        self.connection.report(self.assignment, kind, *values)


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
    ) -> None:
        """`concurrency` jobs run at once, over all servers. `mode` is for plain functions: thread, process, inline.

        `prefetch` more jobs are fetched ahead, which saves a round trip after each of many short jobs. They wait here
        even if another worker is idle, and the server's time limits count from when they were fetched.
        With `tracebacks` clients receive the traceback of a failure, not only its reason. `tls` is for a URL like
        gearmans:// if the default context (see `geartrain.client.tls`) does not fit.
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
        self._tracebacks = tracebacks
        self._tls = [context_for(server, tls) for server in self._addresses]  # raises now for unusable files
        self._functions: dict[bytes, RegisteredFunction] = {}
        self._keepers: list[ConnectionKeeper] = []  # one for each server
        self._keeper_tasks: list[asyncio.Task[None]] = []
        self._running: dict[Assignment, RunningJob] = {}
        # Fetched ahead, or by protocols that do not use the slots.
        self._backlog: deque[tuple[WorkerConnection, Assignment]] = deque()
        self._pools: dict[str, ThreadPool] = {}  # by mode
        self._giving_up = False  # jobs that still run are left to other workers
        self._stop_requests = 0
        self._stopping: asyncio.Event | None = None  # after the first request
        self._aborting: asyncio.Event | None = None  # after the second
        self._idle: asyncio.Event | None = None

    # Functions

    def register(self, function: Text, call: Function, *, timeout: Duration = 0.0, mode: str = "") -> None:
        """Run jobs of this function; may be called at any time. `timeout` is how long one of its jobs may take."""
        asynchronous = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
        name = arguments.encoded(function)
        limit = arguments.seconds(timeout)
        self._functions[name] = RegisteredFunction(
            call, limit, "coroutine" if asynchronous else _checked(mode or self._mode)
        )
        for connection in self._open_connections():
            connection.protocol.register(name, limit)

    def unregister(self, function: Text) -> None:
        """Take no more jobs of this function; running ones go on."""
        name = arguments.encoded(function)
        if self._functions.pop(name, None) is not None:
            for connection in self._open_connections():
                connection.protocol.unregister(name)

    def function(self, name: Text = "", *, timeout: Duration = 0.0, mode: str = "") -> Callable[[F], F]:
        """Register the decorated function; the default name is its own."""

        def decorate(call: F) -> F:
            self.register(name or getattr(call, "__name__", ""), call, timeout=timeout, mode=mode)
            return call

        return decorate

    def timeouts(self) -> dict[bytes, float]:
        """The time limits of the registered functions, by name."""
        return {name: function.timeout for name, function in self._functions.items()}

    # Start and stop

    async def run(self, signals: bool = True) -> None:
        """Run jobs until `stop`, SIGTERM or SIGINT, then finish the running ones; `signals=False` ignores signals."""
        with self._signal_handlers() if signals else contextlib.nullcontext():
            await self.start()
            await self.close(ask=False)

    async def start(self) -> None:
        """Begin to run jobs in the background; `ready` waits until all servers are connected."""
        if self._keeper_tasks:
            return
        self._stopping, self._aborting, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._keepers = [
            ConnectionKeeper(self, server, tls) for server, tls in zip(self._addresses, self._tls, strict=True)
        ]
        self._apply_stop_requests()
        self._keeper_tasks = [asyncio.create_task(keeper.run()) for keeper in self._keepers]

    async def ready(self) -> None:
        """Wait until the worker is connected to all its servers."""
        for keeper in self._keepers:
            await keeper.connected.wait()

    def stop(self) -> None:
        """Finish the running jobs and end; the second time, end at once. Other threads use `call_soon_threadsafe`."""
        self._stop_requests += 1
        self._apply_stop_requests()

    async def close(self, ask: bool = True) -> None:
        """Stop, and wait for the end; with `ask=False`, wait until `stop` is called elsewhere."""
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

    async def __aenter__(self) -> Self:
        await self.start()
        await self.ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Called by the connections

    def assigned(self, connection: WorkerConnection, assignment: Assignment) -> None:
        """A server assigned a job to this worker."""
        if len(self._running) < self.concurrency or self._may_wait_in_pool(assignment):
            self._begin(connection, assignment)
        else:
            self._backlog.append((connection, assignment))

    def revoked(self, assignment: Assignment) -> None:
        """A server took a job back: a coroutine is cancelled, other functions can see it in `job.revoked`."""
        running = self._running.get(assignment)
        if running is not None:
            running.job.revoked = True
            if running.task is not None:
                running.task.cancel()
            return
        for entry in list(self._backlog):
            connection, waiting = entry
            if waiting is assignment:
                self._backlog.remove(entry)
                connection.protocol.release(assignment)

    # Running jobs

    def _may_wait_in_pool(self, assignment: Assignment) -> bool:
        """Whether a job that was fetched ahead may wait in the thread pool, which saves a wake-up of the loop.

        As long as all jobs are the pool's, no more of them run than there are threads.
        """
        function = self._functions.get(assignment.function)
        pool = self._pools.get(function.mode) if function is not None else None
        return pool is not None and not self._backlog and pool.busy == len(self._running)

    def _begin(self, connection: WorkerConnection, assignment: Assignment) -> None:
        function = self._functions.get(assignment.function)
        pool = self._pool(function.mode) if function is not None and function.mode in _POOLS else None
        running = RunningJob(connection, assignment, pool)
        self._running[assignment] = running
        if function is None:
            self._ended(running, JobOutcome(failure="this worker does not run the function any more"))
        elif pool is not None:
            pool.run(function.call, running.job, functools.partial(self._ended, running))
        elif function.mode == "coroutine":
            running.task = asyncio.create_task(self._run_coroutine(running, function))
        else:
            self._ended(running, execution.execute(function.call, running.job))

    def _pool(self, mode: str) -> ThreadPool:
        pool = self._pools.get(mode)
        if pool is None:
            pool = self._pools[mode] = ThreadPool(self.concurrency, _POOLS[mode])
        return pool

    async def _run_coroutine(self, running: RunningJob, function: RegisteredFunction) -> None:
        call: Any = function.call
        try:
            if function.timeout:
                outcome = await _run_within(function.timeout, call, running.job)
            else:
                outcome = execution.succeeded(running.job, await call(running.job))
        except Exception as error:
            outcome = execution.failed(error)
        except asyncio.CancelledError:
            # By a revocation or a stop, after which the job is another worker's; or by the function itself.
            running.job.revoked = running.job.revoked or self._giving_up
            outcome = JobOutcome(failure="the function was cancelled")
        except BaseException:  # the whole program ends: the server gives the job to another worker
            running.job.revoked = True
            self._ended(running, JobOutcome())
            raise
        self._ended(running, outcome)

    def _ended(self, running: RunningJob, outcome: JobOutcome) -> None:
        """Send the outcome to the server that assigned the job, and begin the next job."""
        job, assignment, protocol = running.job, running.assignment, running.connection.protocol
        self._running.pop(assignment, None)
        if not running.connection.is_open or job.revoked:
            protocol.release(assignment)
        elif outcome.failure is not None:
            _log.info("job %s of %s failed: %s", job.handle, job.function, outcome.traceback or outcome.failure)
            reason = outcome.traceback if self._tracebacks and outcome.traceback else outcome.failure
            protocol.fail(assignment, reason, outcome.data, outcome.code)
        elif outcome.delay is not None:
            protocol.reschedule(assignment, outcome.delay)
        else:
            protocol.complete(assignment, outcome.result)
        if self._backlog and len(self._running) < self.concurrency:
            self._begin(*self._backlog.popleft())
        if not self._running and self._idle is not None:
            self._idle.set()

    # Stopping

    async def _finish(self) -> None:
        """Fetch no more jobs, and wait for the running ones."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_FETCH_SECONDS):
                await asyncio.gather(*(keeper.fetching_stopped() for keeper in self._keepers))
        assert self._idle is not None
        while self._running:
            self._idle.clear()
            await self._idle.wait()

    async def _end(self) -> None:
        """Give up jobs that still run, close the connections, and end threads and processes."""
        self._giving_up = True
        for task in self._keeper_tasks:
            task.cancel()
        await asyncio.gather(*self._keeper_tasks, return_exceptions=True)
        tasks = [running.task for running in self._running.values() if running.task is not None]
        aborted = bool(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for keeper in self._keepers:
            await keeper.close()
        for pool in self._pools.values():
            if aborted:
                pool.abandon()
            else:
                await pool.close()
        self._keeper_tasks, self._keepers = [], []
        self._pools.clear()
        self._running.clear()
        self._stop_requests = 0
        self._giving_up = False

    def _apply_stop_requests(self) -> None:
        if self._stopping is not None and self._aborting is not None:
            if self._stop_requests > 0 and not self._stopping.is_set():
                self._stopping.set()
                for keeper in self._keepers:
                    keeper.stop_fetching()
                _log.info("stopping after %d running jobs", len(self._running))
            if self._stop_requests > 1:
                self._aborting.set()

    @contextlib.contextmanager
    def _signal_handlers(self) -> Iterator[None]:
        """Let signals call `stop`. Only the main thread can handle signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _open_connections(self) -> list[WorkerConnection]:
        return [keeper.open_connection for keeper in self._keepers if keeper.open_connection is not None]


async def _run_within(seconds: float, call: Any, job: Job) -> JobOutcome:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return execution.succeeded(job, await call(job))
    except TimeoutError:
        if not limit.expired():
            raise  # by the function itself
        return JobOutcome(failure=f"it did not finish within {seconds:g} seconds")


def _checked(mode: str) -> str:
    if mode not in MODES:
        raise ValueError(f"{mode!r} is no mode; use {', '.join(MODES)}")
    return mode
