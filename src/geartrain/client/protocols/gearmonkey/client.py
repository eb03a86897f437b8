"""A client that speaks GearMonkey: one connection for commands, one for subscriptions.

In the document a client waits with BRPOP, which needs a connection for each job. Workers also publish that a job has
finished, so here one subscription per function serves all its jobs, and the result is read from the job's hash. A
message is lost if the worker dies after it wrote the hash, so the hashes of watched jobs are also polled; more often
while they run, since progress is not published.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from geartrain.address import Address
from geartrain.client.job_events import Completed, Event, Failed, Progressed
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.redis import client_flow, names
from geartrain.client.redis.flow import BrokenError, CommandError, NoScriptError
from geartrain.client.redis.job import Job, Options
from geartrain.client.redis.pipeline import Pipeline
from geartrain.client.redis.submitter import Submitter
from geartrain.errors import ClientError, RefusedError, ResultCutError, ResultGoneError, ServerGoneError, UncertainError
from geartrain.model import Priority

CLIENT: Final = Capabilities(
    background=True,
    priority=True,
    run_at=True,
    status=True,
    cancel=True,
    result_later=True,
    progress=True,
    failure=True,
)

FLOW_ERRORS: Final = (BrokenError, CommandError, NoScriptError)
_RESULT_CUT: Final = "RESULTCUT"  # the first word of a Geartrain server's error
POLL_SECONDS: Final = 1.0  # between two polls of running jobs
_POLLS_PER_FULL_POLL: Final = 10  # after which all jobs are polled, not only running ones
_STATES: Final = {"idle": "queued", "busy": "running", "success": "done", "error": "failed"}
_PRIORITIES: Final = {Priority.HIGH: "high", Priority.NORMAL: "normal", Priority.LOW: "low"}


class WatchedJob:
    """A job whose end at least one listener waits for."""

    __slots__ = ("accepted", "finished", "function", "listeners", "number", "progress", "running")

    def __init__(self, function: str, listener: JobListener) -> None:
        self.function = function
        self.number = 0  # 0: not known yet
        self.listeners = [listener]  # empty: forgotten
        self.accepted = False  # the server has it
        self.running = False  # its start was published
        self.finished = False  # its end was published
        self.progress: tuple[float, float] = (0, 0)  # that was reported last

    def notify(self, event: Event) -> None:
        """Pass an event to all listeners."""
        for listener in list(self.listeners):
            listener.event(event)


class JobEventQueue:
    """The events of a background job that are not read yet."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Event | Exception] = asyncio.Queue()

    def accepted(self, acceptance: Acceptance) -> None:
        """Not called: the job was submitted before."""

    def refused(self, error: Exception) -> None:
        """Not called: the job was submitted before."""

    def event(self, event: Event) -> None:
        self.queue.put_nowait(event)

    def gone(self, error: Exception) -> None:
        self.queue.put_nowait(error)


class Client(ClientProtocol):
    """A client: its two connections, and the jobs that it watches."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._connection = Pipeline(self._broken)
        self._subscription = Pipeline(self._broken, pushed=self._pushed)
        self._submitter = Submitter()
        self._watched: dict[str, dict[int, WatchedJob]] = {}  # by function, each of which has a subscription, and id
        self._by_listener: dict[JobListener, WatchedJob] = {}  # besides, those that are being submitted
        self._opened = False
        self._over = False
        self._polls = 0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Scheduled jobs have one queue, which comes before the others."""
        if not order.function:
            return "the name of a function of GearMonkey is not empty"
        if order.run_at < 0:
            return "a GearMonkey job for a time before 1970 would never run"
        if order.run_at and order.priority == Priority.LOW:
            return "GearMonkey jobs for a time come before all others: they cannot have a low priority"
        return ""

    async def open(self) -> None:
        """Connect, and find out whether this is a Geartrain server."""
        try:
            await self._connection.open(self.address, self.tls, self.token)
            await self._subscription.open(self.address, self.tls, self.token)
            self.is_geartrain = b"geartrain_version" in await self._connection.ask("INFO")
            self._submitter = Submitter(self.is_geartrain)
        except FLOW_ERRORS as error:
            self._abandon()
            raise library_error(error, self.address) from error
        except BaseException:
            self._abandon()
            raise
        self._opened = True

    def submit(self, order: Order, listener: JobListener) -> None:
        """As the server allows. Many submissions run at once."""
        watched = self._by_listener[listener] = WatchedJob(_text(order.function), listener)
        if not order.background:
            self._subscribe(watched.function)
        scheduled = order.run_at or None
        priority = names.SCHEDULED if scheduled else _PRIORITIES[order.priority]

        def named(number: int) -> None:
            before, watched.number = watched.number, number
            if not order.background and watched.listeners:
                self._subscribe(watched.function)
                self._watched[watched.function].pop(before, None)  # the server did not know that id any more
                self._watched[watched.function][number] = watched

        flow = self._submitter.submit(watched.function, order.payload, priority, Options.NONE, scheduled, named)
        self._connection.start(flow, lambda result: self._submitted(order, watched, listener, result))

    async def status(self, acceptance: Acceptance) -> Status:
        """Read the hash, which is kept for a while after the end."""
        job = await self._job(acceptance)
        if job.status is None:
            return Status(False)
        state = _STATES.get(job.status, job.status)
        running = job.status == "busy"
        return Status(not job.finished, running, job.dividend or 0, job.divisor or 0, state, _reason(job))

    def control_name(self, acceptance: Acceptance) -> dict[str, bytes | int]:
        """A job is named by its function and its number; another handle is the server's own."""
        if not acceptance.handle.isdigit():
            return super().control_name(acceptance)
        return {"function": acceptance.function, "id": int(acceptance.handle)}

    async def cancel(self, acceptance: Acceptance) -> bool:
        """Remove the job from its queue. A running job cannot be cancelled."""
        flow = client_flow.cancel_at_server if self.is_geartrain else client_flow.cancel
        try:
            return await self._connection.run(flow(_text(acceptance.function), _number(acceptance)))
        except FLOW_ERRORS as error:
            raise library_error(error, self.address) from error

    async def result(self, acceptance: Acceptance) -> Event:
        """Wait until the hash says how the job ended."""
        async for event in self.events(acceptance):
            if isinstance(event, Completed | Failed):
                return event
        raise ServerGoneError(f"the connection to {self.address} has ended")

    def can_follow(self, acceptance: Acceptance) -> bool:
        """The end of a job is published; a handle that is no number is the server's own."""
        return acceptance.handle.isdigit()

    async def events(self, acceptance: Acceptance) -> AsyncIterator[Event]:
        """Watch the job until its hash says how it ended."""
        if self._over:
            raise ServerGoneError(f"the connection to {self.address} has ended")
        listener = JobEventQueue()
        self._watch(_text(acceptance.function), _number(acceptance), listener)
        try:
            while True:
                event = await listener.queue.get()
                if isinstance(event, Exception):
                    raise event
                yield event
                if isinstance(event, Completed | Failed):
                    return
        finally:
            self.forget(listener)

    def _watch(self, function: str, number: int, listener: JobEventQueue) -> None:
        self._subscribe(function)
        watched = self._watched[function].get(number)
        if watched is None:
            watched = self._watched[function][number] = WatchedJob(function, listener)
            watched.number, watched.accepted = number, True
        else:
            watched.listeners.append(listener)
        self._by_listener[listener] = watched
        self._read_hash(watched)

    def forget(self, listener: JobListener) -> None:
        """Stop watching the job, which goes on."""
        watched = self._by_listener.pop(listener, None)
        if watched is not None:
            watched.listeners.remove(listener)
            if not watched.listeners:
                self._watched.get(watched.function, {}).pop(watched.number, None)

    async def close(self) -> None:
        """Close the connections."""
        self._over = True
        self._stop_polling()
        await asyncio.gather(self._connection.close(), self._subscription.close())
        for listener in list(self._by_listener):
            if isinstance(listener, JobEventQueue):
                listener.gone(ServerGoneError("this side closed the connection"))
        self._by_listener.clear()
        self._watched.clear()

    # Submissions and hashes

    def _submitted(self, order: Order, watched: WatchedJob, listener: JobListener, result: int | Exception) -> None:
        if self._over or listener not in watched.listeners:
            return
        if order.background or isinstance(result, Exception):
            self.forget(listener)
        if isinstance(result, BrokenError | UncertainError):
            listener.gone(result if isinstance(result, UncertainError) else ServerGoneError(str(result)))
        elif isinstance(result, Exception):
            listener.refused(RefusedError(str(result)))
        else:
            watched.accepted = True
            listener.accepted(Acceptance(b"%d" % result, order.function))
            if watched.finished:
                self._read_hash(watched)

    def _read_hash(self, watched: WatchedJob) -> None:
        flow = client_flow.look(watched.function, watched.number)
        self._connection.start(flow, lambda job: self._hash_read(watched, job))

    def _hash_read(self, watched: WatchedJob, job: Job | Exception) -> None:
        if self._over or not watched.listeners:
            return
        problem = _result_error(job)
        if problem is not None:
            for asking in [listener for listener in watched.listeners if isinstance(listener, JobEventQueue)]:
                self.forget(asking)
                asking.gone(problem)
        if isinstance(job, Exception):
            return
        if job.status is None or job.finished:
            listeners = list(watched.listeners)
            for listener in listeners:
                self.forget(listener)
            for listener in listeners:
                listener.event(_ending(job))
            return
        watched.running = watched.running or job.status == "busy"
        progress = (job.dividend or 0, job.divisor or 0)
        if progress != watched.progress:
            watched.progress = progress
            watched.notify(Progressed(*progress))

    async def _job(self, acceptance: Acceptance) -> Job:
        try:
            return await self._connection.run(client_flow.look(_text(acceptance.function), _number(acceptance)))
        except FLOW_ERRORS as error:
            raise library_error(error, self.address) from error

    # Subscriptions and polling

    def _subscribe(self, function: str) -> None:
        if function not in self._watched:
            self._watched[function] = {}
            self._subscription.send_unanswered("SUBSCRIBE", names.channel(function))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._poll)

    def _pushed(self, message: list[Any]) -> None:
        if len(message) != 3 or self._over:
            return
        kind, channel, text = message
        function = _text(channel).removeprefix("channel:")
        jobs = self._watched.get(function, {})
        if kind == b"message":
            what, _, id = text.partition(b":")
            watched = jobs.get(int(id)) if id.isdigit() else None
            if watched is not None:
                self._published(watched, what)
        elif kind == b"subscribe":
            # Jobs that were submitted before the subscription may have ended.
            for watched in jobs.values():
                if watched.accepted:
                    self._read_hash(watched)

    def _published(self, watched: WatchedJob, what: bytes) -> None:
        if what == b"start":
            watched.running = True
        elif what == b"finish":
            watched.finished = True
            if watched.accepted:
                self._read_hash(watched)

    def _poll(self) -> None:
        """Read the hashes of running jobs, sometimes of all, and end subscriptions without jobs."""
        self._timer = None
        self._polls += 1
        full = self._polls % _POLLS_PER_FULL_POLL == 0
        for watched in self._all():
            if watched.accepted and (watched.running or full):
                self._read_hash(watched)
        if full:
            for function in [name for name, jobs in self._watched.items() if not jobs]:
                del self._watched[function]
                self._subscription.send_unanswered("UNSUBSCRIBE", names.channel(function))
        if self._watched:
            self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._poll)

    # Loss of a connection

    def _all(self) -> list[WatchedJob]:
        return [watched for jobs in self._watched.values() for watched in jobs.values()]

    def _broken(self, error: Exception) -> None:
        if self._over or not self._opened:
            return
        self._abandon()  # which fails submissions and questions
        self._over = True
        listeners = list(self._by_listener)
        self._by_listener.clear()
        self._watched.clear()
        for listener in listeners:
            listener.gone(ServerGoneError(f"the connection broke: {error}"))
        self.lost(error)

    def _abandon(self) -> None:
        self._stop_polling()
        self._connection.abandon()
        self._subscription.abandon()

    def _stop_polling(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _result_error(job: Job | Exception) -> ClientError | None:
    """Why the result of a job that was submitted earlier cannot be had; None if the hash does not say so."""
    if isinstance(job, CommandError):
        return ResultCutError(str(job)) if str(job).startswith(_RESULT_CUT) else None
    if isinstance(job, Exception) or job.status is not None:
        return None
    return ResultGoneError("the job is unknown: its hash has expired or was deleted")


def _reason(job: Job) -> str:
    return (job.output or b"").decode("utf-8", "replace") if job.status == "error" else ""


def _ending(job: Job) -> Event:
    if job.status == "success":
        return Completed(job.output or b"")
    if job.status is None:
        return Failed("the job is unknown: its hash has expired or was deleted")
    output = job.output or b""
    return Failed(output.decode("utf-8", "replace"), data=output)


def _text(function: bytes) -> str:
    """Flows have names as text; other bytes become surrogates, so nothing is lost."""
    return function.decode("utf-8", "surrogateescape")


def _number(acceptance: Acceptance) -> int:
    if not acceptance.handle.isdigit():
        raise ClientError(f"{acceptance.handle!r} is no job of GearMonkey: their handles are numbers")
    return int(acceptance.handle)


def library_error(error: Exception, address: Address) -> Exception:
    """The library's error for what a flow raised."""
    if isinstance(error, BrokenError):
        return ServerGoneError(f"the connection to {address} broke: {error}")
    if isinstance(error, CommandError | NoScriptError):
        return ClientError(f"{address} refuses: {error}")
    return error
