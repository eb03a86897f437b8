"""A client that speaks GearMonkey: one connection for commands, one to hear what becomes of jobs.

The document has a client wait with BRPOP, which takes a connection for each job. Workers also publish that a job is
finished, so here one subscription per function tells it for all jobs; what came of a job is then in its hash. Since
such a message may be lost with a worker that wrote the end and died, hashes of jobs that are waited for are also
looked at now and then, more often while they run: nothing is published about progress.
"""

import asyncio
from typing import Any, Final

from geartrain.address import Address
from geartrain.client.job_events import Completed, Event, Failed, Progressed
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.redis import client_flow, names
from geartrain.client.redis.flow import BrokenError, NoScriptError, RefusedError
from geartrain.client.redis.job import Job, Options
from geartrain.client.redis.pipeline import Pipeline
from geartrain.errors import ClientError, ServerGoneError, UncertainError
from geartrain.errors import RefusedError as Refusal
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

FLOW_ERRORS: Final = (BrokenError, RefusedError, NoScriptError)
LOOK_SECONDS: Final = 1.0  # between two looks at jobs that run
_SELDOM: Final = 10  # how many of these pass between two looks at the others
_PRIORITIES: Final = {Priority.HIGH: "high", Priority.NORMAL: "normal", Priority.LOW: "low"}


class Waiting:
    """A job that somebody waits for."""

    __slots__ = ("accepted", "finished", "function", "listeners", "number", "progress", "running")

    def __init__(self, function: str, listener: JobListener) -> None:
        self.function = function
        self.number = 0  # not known yet
        self.listeners = [listener]  # who waits; none any more: it is forgotten
        self.accepted = False  # the server has it
        self.running = False  # it was heard to be started
        self.finished = False  # it was heard to be finished
        self.progress = (0, 0)  # what the listeners were told

    def tell(self, event: Event) -> None:
        """News for everybody who waits."""
        for listener in list(self.listeners):
            listener.event(event)


class Ending:
    """The listener of who waits for a background job's end."""

    def __init__(self) -> None:
        self.future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    def accepted(self, acceptance: Acceptance) -> None:
        """It is somebody else's."""

    def refused(self, error: Exception) -> None:
        """It never is."""

    def event(self, event: Event) -> None:
        """Only the last is wanted."""
        if isinstance(event, Completed | Failed) and not self.future.done():
            self.future.set_result(event)

    def gone(self, error: Exception) -> None:
        """The connection broke."""
        if not self.future.done():
            self.future.set_exception(error)


class Client(ClientProtocol):
    """The two connections, and the jobs that are waited for."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._connection = Pipeline(self._broken)
        self._subscription = Pipeline(self._broken, pushed=self._pushed)
        self._waiting: dict[str, dict[int, Waiting]] = {}  # by function, which is listened to, and id
        self._by_listener: dict[JobListener, Waiting] = {}  # those, and what is being submitted
        self._at_geartrain = False
        self._opened = False
        self._over = False
        self._looks = 0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Jobs for later stand in one queue, which comes before all others."""
        if not order.function:
            return "a function of GearMonkey has a name"
        if order.run_at < 0:
            return "a GearMonkey job for a time before 1970 would never run"
        if order.run_at and order.priority == Priority.LOW:
            return "GearMonkey jobs for a time come before all others: they cannot have a low priority"
        return ""

    async def open(self) -> None:
        """Connect, and see who is there."""
        try:
            await self._connection.open(self.address, self.tls)
            await self._subscription.open(self.address, self.tls)
            self._at_geartrain = b"geartrain_version" in await self._connection.ask("INFO")
        except FLOW_ERRORS as error:
            self._hang_up()
            raise plainly(error, self.address) from error
        except BaseException:
            self._hang_up()
            raise
        self._opened = True

    def submit(self, order: Order, listener: JobListener) -> None:
        """INCR, HMSET, PUBLISH, LPUSH or ZADD; many orders go through these side by side."""
        waiting = self._by_listener[listener] = Waiting(_text(order.function), listener)
        if not order.background:
            self._listen(waiting.function)
        scheduled = order.run_at or None
        priority = names.SCHEDULED if scheduled else _PRIORITIES[order.priority]

        def named(number: int) -> None:
            waiting.number = number
            if not order.background and waiting.listeners:
                self._listen(waiting.function)
                self._waiting[waiting.function][number] = waiting

        flow = client_flow.submit(waiting.function, order.payload, priority, Options.NONE, scheduled, named)
        self._connection.start(flow, lambda result: self._submitted(order, waiting, listener, result))

    async def status(self, acceptance: Acceptance) -> Status:
        """What its hash says; a job that is over is no longer the server's."""
        job = await self._look(acceptance)
        if job.status is None or job.finished:
            return Status(False)
        return Status(True, job.status == "busy", job.dividend or 0, job.divisor or 0)

    async def cancel(self, acceptance: Acceptance) -> bool:
        """Take it out of its queue. A job that runs cannot be ended."""
        flow = client_flow.cancel_at_server if self._at_geartrain else client_flow.cancel
        try:
            return await self._connection.run(flow(_text(acceptance.function), _number(acceptance)))
        except FLOW_ERRORS as error:
            raise plainly(error, self.address) from error

    async def result(self, acceptance: Acceptance) -> Event:
        """Wait until its hash says how it ended."""
        if self._over:
            raise ServerGoneError(f"the connection to {self.address} has ended")
        ending = Ending()
        function, number = _text(acceptance.function), _number(acceptance)
        self._listen(function)
        waiting = self._waiting[function].get(number)
        if waiting is None:
            waiting = self._waiting[function][number] = Waiting(function, ending)
            waiting.number, waiting.accepted = number, True
        else:
            waiting.listeners.append(ending)
        self._by_listener[ending] = waiting
        self._look_at(waiting)
        try:
            return await ending.future
        finally:
            self.forget(ending)

    def forget(self, listener: JobListener) -> None:
        """Its job goes on, and nobody waits for it."""
        waiting = self._by_listener.pop(listener, None)
        if waiting is not None:
            waiting.listeners.remove(listener)
            if not waiting.listeners:
                self._waiting.get(waiting.function, {}).pop(waiting.number, None)

    async def close(self) -> None:
        """Hang up."""
        self._over = True
        self._stop_looking()
        await asyncio.gather(self._connection.close(), self._subscription.close())
        for listener in list(self._by_listener):
            if isinstance(listener, Ending):
                listener.gone(ServerGoneError("this side closed the connection"))
        self._by_listener.clear()
        self._waiting.clear()

    # What becomes of orders

    def _submitted(self, order: Order, waiting: Waiting, listener: JobListener, result: int | Exception) -> None:
        if self._over or listener not in waiting.listeners:
            return
        if order.background or isinstance(result, Exception):
            self.forget(listener)
        if isinstance(result, BrokenError | UncertainError):
            listener.gone(result if isinstance(result, UncertainError) else ServerGoneError(str(result)))
        elif isinstance(result, Exception):
            listener.refused(Refusal(str(result)))
        else:
            waiting.accepted = True
            listener.accepted(Acceptance(b"%d" % result, order.function))
            if waiting.finished:
                self._look_at(waiting)

    def _look_at(self, waiting: Waiting) -> None:
        flow = client_flow.look(waiting.function, waiting.number)
        self._connection.start(flow, lambda job: self._seen(waiting, job))

    def _seen(self, waiting: Waiting, job: Job | Exception) -> None:
        if self._over or isinstance(job, Exception) or not waiting.listeners:
            return
        if job.status is None or job.finished:
            listeners = list(waiting.listeners)
            for listener in listeners:
                self.forget(listener)
            for listener in listeners:
                listener.event(_ending(job))
            return
        waiting.running = waiting.running or job.status == "busy"
        progress = (job.dividend or 0, job.divisor or 0)
        if progress != waiting.progress:
            waiting.progress = progress
            waiting.tell(Progressed(*progress))

    async def _look(self, acceptance: Acceptance) -> Job:
        try:
            return await self._connection.run(client_flow.look(_text(acceptance.function), _number(acceptance)))
        except FLOW_ERRORS as error:
            raise plainly(error, self.address) from error

    # Hearing

    def _listen(self, function: str) -> None:
        if function not in self._waiting:
            self._waiting[function] = {}
            self._subscription.send_unanswered("SUBSCRIBE", names.channel(function))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_around)

    def _pushed(self, message: list[Any]) -> None:
        if len(message) != 3 or self._over:
            return
        kind, channel, text = message
        function = _text(channel).removeprefix("channel:")
        jobs = self._waiting.get(function, {})
        if kind == b"message":
            what, _, id = text.partition(b":")
            waiting = jobs.get(int(id)) if id.isdigit() else None
            if waiting is not None:
                self._heard_of(waiting, what)
        elif kind == b"subscribe":
            # Those that were submitted before may be over.
            for waiting in jobs.values():
                if waiting.accepted:
                    self._look_at(waiting)

    def _heard_of(self, waiting: Waiting, what: bytes) -> None:
        if what == b"start":
            waiting.running = True
        elif what == b"finish":
            waiting.finished = True
            if waiting.accepted:
                self._look_at(waiting)

    def _look_around(self) -> None:
        """Look at jobs that run, and sometimes at all; functions that nobody waits for are not listened to."""
        self._timer = None
        self._looks += 1
        seldom = self._looks % _SELDOM == 0
        for waiting in self._all():
            if waiting.accepted and (waiting.running or seldom):
                self._look_at(waiting)
        if seldom:
            for function in [name for name, jobs in self._waiting.items() if not jobs]:
                del self._waiting[function]
                self._subscription.send_unanswered("UNSUBSCRIBE", names.channel(function))
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_around)

    # The end

    def _all(self) -> list[Waiting]:
        return [waiting for jobs in self._waiting.values() for waiting in jobs.values()]

    def _broken(self, error: Exception) -> None:
        if self._over or not self._opened:
            return
        self._hang_up()  # which tells whoever submits or asks
        self._over = True
        waiting = list(self._by_listener)
        self._by_listener.clear()
        self._waiting.clear()
        for listener in waiting:
            listener.gone(ServerGoneError(f"the connection broke: {error}"))
        self.lost(error)

    def _hang_up(self) -> None:
        self._stop_looking()
        self._connection.abandon()
        self._subscription.abandon()

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _ending(job: Job) -> Event:
    if job.status == "success":
        return Completed(job.output or b"")
    if job.status is None:
        return Failed("the server does not know the job any more: its hash has expired or was deleted")
    words = job.output or b""
    return Failed(words.decode("utf-8", "replace"), data=words)


def _text(function: bytes) -> str:
    """Flows have names as text; whatever bytes there are come back."""
    return function.decode("utf-8", "surrogateescape")


def _number(acceptance: Acceptance) -> int:
    if not acceptance.handle.isdigit():
        raise ClientError(f"{acceptance.handle!r} is no job of GearMonkey: their handles are numbers")
    return int(acceptance.handle)


def plainly(error: Exception, address: Address) -> Exception:
    """What a flow raises, in the words of the library."""
    if isinstance(error, BrokenError):
        return ServerGoneError(f"the connection to {address} broke: {error}")
    if isinstance(error, RefusedError | NoScriptError):
        return ClientError(f"{address} refuses: {error}")
    return error
