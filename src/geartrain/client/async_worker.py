"""Running jobs for one or several servers, by whatever protocol their URLs name.

    worker = AsyncWorker("gearman://127.0.0.1:4730", concurrency=10)

    @worker.function("reverse")
    async def reverse(job):
        return job.payload[::-1]

    asyncio.run(worker.run())

Coroutine functions run on the loop; plain ones in threads, in processes, or (`mode="inline"`, for functions that take
no time) on the loop as well. A stop lets what runs finish; a second one does not wait.
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
from geartrain.client.job import Function, Job, Outcome
from geartrain.client.processes import InProcess, InThread
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import Assignment
from geartrain.client.slots import Slots
from geartrain.client.threads import Threads
from geartrain.client.worker_connection import ConnectionKeeper, WorkerConnection
from geartrain.errors import AddressError

F = TypeVar("F", bound=Function)

MODES: Final = ("thread", "process", "inline")
_REST_SECONDS: Final = 5.0  # for servers to answer the last requests for jobs
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger("geartrain.worker")


class Offer(NamedTuple):
    """A function that a worker runs."""

    call: Function
    timeout: float  # seconds a job may take; 0: no limit
    mode: str  # "coroutine" or one of MODES


class Run:
    """A job that runs."""

    __slots__ = ("assignment", "job", "shift", "task")

    def __init__(self, shift: WorkerConnection, assignment: Assignment) -> None:
        self.shift = shift
        self.assignment = assignment
        names = (assignment.function, assignment.handle, assignment.unique)
        self.job = Job(assignment.payload, names, self.tell, shift.objection)
        self.task: asyncio.Task[None] | None = None  # of a coroutine function

    def tell(self, verb: str, *said: Any) -> None:
        """Pass on what it says."""
        self.shift.tell(self.assignment, verb, *said)


class AsyncWorker:
    """A worker. Register functions, then `await run()`; or use it as a context in which it works."""

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

        `prefetch` more are taken ahead, which saves the way to the server after each: for many short jobs. They wait
        here though another worker may be idle, and the server's time limits count from when they were taken.
        With `tracebacks` clients hear where a function failed, not only why.
        """
        if not urls:
            raise AddressError("a worker needs at least one URL")
        if concurrency < 1:
            raise ValueError("a worker runs at least one job at a time")
        if prefetch < 0:
            raise ValueError("a worker cannot take fewer than no jobs ahead")
        self._addresses = [address.parse(url) for url in urls]
        for place in self._addresses:
            registry.worker_class(place)  # an unknown protocol or a missing library is said now
        self.concurrency = concurrency
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.slots = Slots(concurrency + prefetch)
        self._mode = _checked(mode)
        self._tracebacks = tracebacks
        self._tls = tls
        self._offers: dict[bytes, Offer] = {}
        self._posts: list[ConnectionKeeper] = []
        self._keeping: list[asyncio.Task[None]] = []
        self._running: dict[Assignment, Run] = {}
        # Taken ahead, or from links that ask for more than they should.
        self._backlog: deque[tuple[WorkerConnection, Assignment]] = deque()
        self._crews: dict[str, Threads] = {}  # by mode
        self._leaving = False  # what still runs is given up
        self._stop_asked = 0
        self._stopping: asyncio.Event | None = None
        self._hurry: asyncio.Event | None = None
        self._idle: asyncio.Event | None = None

    # What it offers

    def register(self, function: Text, call: Function, *, timeout: Duration = 0.0, mode: str = "") -> None:
        """Offer a function; also while it works. `timeout` is how long one of its jobs may take."""
        asynchronous = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
        how = "coroutine" if asynchronous else _checked(mode or self._mode)
        name = arguments.encoded(function)
        limit = arguments.seconds(timeout)
        self._offers[name] = Offer(call, limit, how)
        for shift in self._shifts():
            shift.protocol.register(name, limit)

    def unregister(self, function: Text) -> None:
        """Offer a function no longer; what runs of it goes on."""
        name = arguments.encoded(function)
        if self._offers.pop(name, None) is not None:
            for shift in self._shifts():
                shift.protocol.unregister(name)

    def function(self, name: Text = "", *, timeout: Duration = 0.0, mode: str = "") -> Callable[[F], F]:
        """The same as a decorator; without a name, the function's own."""

        def remember(call: F) -> F:
            self.register(name or getattr(call, "__name__", ""), call, timeout=timeout, mode=mode)
            return call

        return remember

    def offers(self) -> dict[bytes, float]:
        """Its functions and their time limits, as a protocol wants them."""
        return {name: offer.timeout for name, offer in self._offers.items()}

    # Its life

    async def run(self, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT; then finish what runs. `signals=False` leaves signals alone."""
        with self._heeding() if signals else contextlib.nullcontext():
            await self.start()
            await self.close(ask=False)

    async def start(self) -> None:
        """Begin to work in the background; `ready` tells when it does."""
        if self._keeping:
            return
        self._stopping, self._hurry, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._posts = [ConnectionKeeper(self, place, self._tls) for place in self._addresses]
        self._heed_stops()
        self._keeping = [asyncio.create_task(post.keep()) for post in self._posts]

    async def ready(self) -> None:
        """Wait until it works for all its servers."""
        for post in self._posts:
            await post.manned.wait()

    def stop(self) -> None:
        """Finish what runs and end; the second time, end at once. From another thread: `loop.call_soon_threadsafe`."""
        self._stop_asked += 1
        self._heed_stops()

    async def close(self, ask: bool = True) -> None:
        """Stop, and wait for the end; with `ask=False` only wait until somebody stops it."""
        if not self._keeping:
            return
        assert self._stopping is not None
        assert self._hurry is not None
        if ask:
            self.stop()
        try:
            await self._stopping.wait()
            finishing = asyncio.create_task(self._finish())
            hurry = asyncio.create_task(self._hurry.wait())
            await asyncio.wait((finishing, hurry), return_when=asyncio.FIRST_COMPLETED)
            for task in (finishing, hurry):
                task.cancel()
            await asyncio.gather(finishing, hurry, return_exceptions=True)
        finally:
            await self._leave()

    async def __aenter__(self) -> Self:
        await self.start()
        await self.ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What its shifts tell it

    def assigned(self, shift: WorkerConnection, assignment: Assignment) -> None:
        """A server gave us a job."""
        if len(self._running) < self.concurrency or self._may_queue_up(assignment):
            self._begin(shift, assignment)
        else:
            self._backlog.append((shift, assignment))

    def revoked(self, assignment: Assignment) -> None:
        """A server took one back: a coroutine is cancelled, everything else may see it in `job.revoked`."""
        run = self._running.get(assignment)
        if run is not None:
            run.job.revoked = True
            if run.task is not None:
                run.task.cancel()
            return
        for waiting in list(self._backlog):
            if waiting[1] is assignment:
                self._backlog.remove(waiting)
                waiting[0].protocol.release(assignment)

    # Running jobs

    def _may_queue_up(self, assignment: Assignment) -> bool:
        """Whether a job that was taken ahead may wait with the threads, which then need not wait for the loop.

        As long as all jobs are theirs, no more of them run than there are threads.
        """
        offer = self._offers.get(assignment.function)
        crew = self._crews.get(offer.mode) if offer is not None else None
        return crew is not None and not self._backlog and crew.busy == len(self._running)

    def _begin(self, shift: WorkerConnection, assignment: Assignment) -> None:
        offer = self._offers.get(assignment.function)
        run = Run(shift, assignment)
        self._running[assignment] = run
        if offer is None:
            self._ended(run, Outcome(failure="this worker does not offer the function any more"))
        elif offer.mode == "coroutine":
            run.task = asyncio.create_task(self._run_coroutine(run, offer))
        elif offer.mode == "inline":
            self._ended(run, execution.execute(offer.call, run.job))
        else:
            self._run_elsewhere(run, offer)

    async def _run_coroutine(self, run: Run, offer: Offer) -> None:
        call: Any = offer.call
        try:
            if offer.timeout:
                outcome = await _within(offer.timeout, call, run.job)
            else:
                outcome = execution.succeeded(run.job, await call(run.job))
        except Exception as error:
            outcome = execution.failed(error)
        except asyncio.CancelledError:
            # By a server that took it back, or by a stop, after which it is another worker's; or by its own code.
            run.job.revoked = run.job.revoked or self._leaving
            outcome = Outcome(failure="it was cancelled")
        except BaseException:  # the whole program ends: the server gives the job to another
            run.job.revoked = True
            self._ended(run, Outcome())
            raise
        self._ended(run, outcome)

    def _run_elsewhere(self, run: Run, offer: Offer) -> None:
        crew = self._crews.get(offer.mode)
        if crew is None:
            crew = self._crews[offer.mode] = Threads(
                self.concurrency, InThread if offer.mode == "thread" else InProcess
            )
        # What it says comes from another thread, and must not overtake or be overtaken by its end.
        run.job._tell = functools.partial(crew.tell, run.tell)
        crew.run(offer.call, run.job, functools.partial(self._ended, run))

    def _ended(self, run: Run, outcome: Outcome) -> None:
        """Answer the server that gave us the job, if it still wants to hear, and begin the next."""
        shift, assignment = run.shift, run.assignment
        self._running.pop(assignment, None)
        protocol = shift.protocol
        if not shift.stands or run.job.revoked:
            protocol.release(assignment)
        elif outcome.failure is not None:
            _log.info("job %s of %s failed: %s", run.job.handle, run.job.function, outcome.account or outcome.failure)
            reason = outcome.account if self._tracebacks and outcome.account else outcome.failure
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
        """Take no more, and wait for what runs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REST_SECONDS):
                await asyncio.gather(*(post.fetching_stopped() for post in self._posts))
        assert self._idle is not None
        while self._running:
            self._idle.clear()
            await self._idle.wait()

    async def _leave(self) -> None:
        """Hang up, and let threads and processes end."""
        self._leaving = True
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        tasks = [run.task for run in self._running.values() if run.task is not None]
        in_a_hurry = bool(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for post in self._posts:
            await post.close()
        for crew in self._crews.values():
            if in_a_hurry:
                crew.abandon()
            else:
                await crew.close()
        self._keeping, self._posts = [], []
        self._crews.clear()
        self._running.clear()
        self._stop_asked = 0
        self._leaving = False

    def _heed_stops(self) -> None:
        if self._stopping is not None and self._hurry is not None:
            if self._stop_asked > 0 and not self._stopping.is_set():
                self._stopping.set()
                for post in self._posts:
                    post.relieve()
                _log.info("stopping, when %d running jobs are done", len(self._running))
            if self._stop_asked > 1:
                self._hurry.set()

    @contextlib.contextmanager
    def _heeding(self) -> Iterator[None]:
        """Have signals stop it, where signals can be had: in the main thread."""
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

    def _shifts(self) -> list[WorkerConnection]:
        return [post.shift for post in self._posts if post.shift is not None and post.shift.stands]


async def _within(seconds: float, call: Any, job: Job) -> Outcome:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return execution.succeeded(job, await call(job))
    except TimeoutError:
        if not limit.expired():
            raise  # the function's own
        return Outcome(failure=f"it did not finish within {seconds:g} seconds")


def _checked(mode: str) -> str:
    if mode not in MODES:
        raise ValueError(f"{mode!r} is no way to run a function; there are {', '.join(MODES)}")
    return mode
