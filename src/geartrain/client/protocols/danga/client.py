"""A client that speaks the 2005 draft.

Answers of the draft do not name their job: only their order identifies it, and while a client waits for a job, every
answer on that connection is about this job. So a client has one connection for background jobs and questions, which
are answered in their order, and a connection for each foreground job, which the next job uses after it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from geartrain.address import Address
from geartrain.client.job_events import Completed, Event, Failed, Progressed
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.protocols.connection import ServerConnection
from geartrain.client.protocols.danga.worker import unsupported_name
from geartrain.errors import ClientError, RefusedError, ResultCutError, ServerGoneError, WireError
from geartrain.wire import danga as wire

CLIENT: Final = Capabilities(
    background=True, unique=True, status=True, result_later=True, progress=True, failure=True
)  # fmt: skip

# Foreground jobs at the same time, each on a connection of its own; more have to wait.
MOST_CONNECTIONS: Final = 256
KEPT_CONNECTIONS: Final = 32  # that stay open while they are idle
# Seconds between two requests for a result: the draft has no notification.
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0

Answer = TypeVar("Answer")


class Client(ClientProtocol):
    """A client: its connections, and the orders that wait for one."""

    capabilities = CLIENT
    is_geartrain = True  # no other server speaks the draft

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._requests = RequestConnection(self.broken)
        self._idle: list[ForegroundConnection] = []
        self._busy: dict[JobListener, ForegroundConnection] = {}
        self._waiting: deque[tuple[Order, JobListener]] = deque()
        self._openings: set[asyncio.Task[None]] = set()
        self._over = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Names end with NUL, and are not empty."""
        if b"\0" in order.unique:
            return "a unique key of the 2005 draft contains no NUL"
        return unsupported_name(order.function)

    async def open(self) -> None:
        """Connect, and send a request that every server answers."""
        await self._requests.open(self)

    def submit(self, order: Order, listener: JobListener) -> None:
        """job_create_req, for a foreground job on a connection of its own."""
        if self._over:
            listener.gone(ServerGoneError(f"the connection to {self.address} has ended"))
        elif order.background:
            self._requests.create(order, listener)
        elif self._idle:
            self._submit_on(self._idle.pop(), order, listener)
        elif len(self._busy) < MOST_CONNECTIONS:
            self._submit_on(ForegroundConnection(self), order, listener)
        else:
            self._waiting.append((order, listener))

    async def status(self, acceptance: Acceptance) -> Status:
        """The progress. The draft cannot tell a waiting job from an unknown one."""
        questions = self._requests.ask_status(acceptance.handle), self._requests.ask_completion(acceptance.handle)
        (numerator, denominator, _), completion = await asyncio.gather(*questions)
        if completion.seconds:
            return Status(False)
        running = bool(numerator or denominator)
        return Status(True, running, numerator, denominator, "running" if running else "queued")

    async def result(self, acceptance: Acceptance) -> Event:
        """Poll until the job has ended."""
        pause = _FIRST_PAUSE
        while True:
            completion = await self._requests.ask_completion(acceptance.handle)
            if completion.seconds:
                if completion.code == wire.RESULT_CUT and completion.result.startswith(wire.RESULT_CUT_TEXT):
                    raise ResultCutError(completion.result.decode("utf-8", "replace"))
                return ending(completion)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def forget(self, listener: JobListener) -> None:
        """Close its connection, which tells the server that the client no longer waits; a running job goes on."""
        connection = self._busy.pop(listener, None)
        if connection is not None:
            connection.abandon()
            self._begin_waiting()
            return
        self._waiting = deque(waiting for waiting in self._waiting if waiting[1] is not listener)
        self._requests.forget(listener)

    async def close(self) -> None:
        """Close every connection."""
        self._over = True
        openings = list(self._openings)
        for opening in openings:
            opening.cancel()
        await asyncio.gather(*openings, return_exceptions=True)
        connections = [*self._idle, *self._busy.values()]
        await asyncio.gather(self._requests.close(), *(connection.close() for connection in connections))
        self._requests.abandon(ServerGoneError("this side closed the connection"))
        self._idle.clear()
        self._busy.clear()

    # Called by the connections

    def freed(self, connection: "ForegroundConnection", listener: JobListener) -> None:
        """A connection's job has ended."""
        self._busy.pop(listener, None)
        if self._waiting:
            self._submit_on(connection, *self._waiting.popleft())
        elif len(self._idle) < KEPT_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.abandon()

    def broken(self, error: Exception) -> None:
        """One connection broke: close the others, which lead to the same server."""
        if self._over:
            return
        self._over = True
        taken, waiting = self._busy, self._waiting
        self._busy, self._waiting = {}, deque()
        for connection in (*taken.values(), *self._idle):
            connection.abandon()
        self._idle.clear()
        for listener in (*taken, *(listener for _, listener in waiting), *self._requests.abandon(error)):
            listener.gone(error)
        self.lost(error)

    def _submit_on(self, connection: "ForegroundConnection", order: Order, listener: JobListener) -> None:
        self._busy[listener] = connection
        connection.take(order, listener)
        if not connection.is_open:
            opening = asyncio.get_running_loop().create_task(self._open_connection(connection))
            self._openings.add(opening)
            opening.add_done_callback(self._openings.discard)

    async def _open_connection(self, connection: "ForegroundConnection") -> None:
        try:
            await connection.open()
        except (OSError, ClientError, WireError) as error:
            if not connection.abandoned:
                self.broken(error)

    def _begin_waiting(self) -> None:
        if self._waiting and len(self._busy) < MOST_CONNECTIONS:
            self._submit_on(ForegroundConnection(self), *self._waiting.popleft())


class ForegroundConnection:
    """A connection for one foreground job at a time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._connection = ServerConnection(self._received, self._broken)
        self.is_open = False
        self.abandoned = False
        self._reader = wire.Reader(magic=wire.RESPONSE)
        self._order: Order | None = None
        self._listener: JobListener | None = None

    async def open(self) -> None:
        """Connect."""
        await self._connection.open(self._client.address, self._client.tls)
        if self.abandoned:
            self._connection.abandon()
            return
        self.is_open = True
        self._send()

    def take(self, order: Order, listener: JobListener) -> None:
        """Submit a job, now or when the connection is open."""
        self._order, self._listener = order, listener
        if self.is_open:
            self._send()

    def abandon(self) -> None:
        """Close at once; the listener is not called any more."""
        self.abandoned = True
        self._listener = None
        self._connection.abandon()

    async def close(self) -> None:
        """Close the connection without telling the listener."""
        await self._connection.close()

    def _send(self) -> None:
        order = self._order
        assert order is not None
        self._connection.write(wire.job_create_req(order.function, order.unique, wire.SYNC_WAIT, order.payload))

    def _received(self, data: bytes) -> None:
        reader = self._reader
        reader.feed(data)
        while (kind := reader.next()) != wire.MORE:
            listener, order = self._listener, self._order
            if listener is None or order is None:
                raise WireError("OUT_OF_TURN", "the server answered for a job that has ended")
            _HANDLERS[kind](self, listener, order, reader.body)

    def _created(self, listener: JobListener, order: Order, body: bytes) -> None:
        if body:
            listener.accepted(Acceptance(body, order.function, order.unique))
        else:
            self._end(listener)
            listener.refused(refusal(order))

    def _progressed(self, listener: JobListener, order: Order, body: bytes) -> None:
        numerator, denominator, _ = wire.status(body)
        listener.event(Progressed(numerator, denominator))

    def _completed(self, listener: JobListener, order: Order, body: bytes) -> None:
        self._end(listener)
        listener.event(ending(wire.completion(body)))

    def _unexpected(self, listener: JobListener, order: Order, body: bytes) -> None:
        raise WireError("INVALID_TYPE", "the server sent a client a packet for workers")

    def _end(self, listener: JobListener) -> None:
        self._order = self._listener = None
        self._client.freed(self, listener)

    def _broken(self, error: Exception) -> None:
        self._client.broken(error)


_HANDLERS: Final[dict[int, Callable[[ForegroundConnection, JobListener, Order, bytes], None]]] = {
    wire.NOOP: ForegroundConnection._unexpected,
    wire.JOB_CREATE_RES: ForegroundConnection._created,
    wire.JOB_ASSIGN_RES: ForegroundConnection._unexpected,
    wire.JOB_STATUS_RES: ForegroundConnection._progressed,
    wire.JOB_COMPLETE_RES: ForegroundConnection._completed,
}


class RequestConnection:
    """The connection for background jobs and questions: answers of one type arrive in the order of the requests."""

    def __init__(self, broken: Callable[[Exception], None]) -> None:
        self._connection = ServerConnection(self._received, broken)
        self._reader = wire.Reader(magic=wire.RESPONSE)
        self._creations: deque[tuple[Order, JobListener]] = deque()
        self._forgotten: set[JobListener] = set()
        self._statuses: deque[asyncio.Future[wire.JobStatus]] = deque()
        self._completions: deque[asyncio.Future[wire.Completion]] = deque()
        self._ended: Exception | None = None  # why requests are not answered any more

    async def open(self, client: Client) -> None:
        """Connect, and ask for the status of no particular job."""
        await self._connection.open(client.address, client.tls)
        self._connection.write(wire.job_status_req(b""))
        unread: asyncio.Future[wire.JobStatus] = asyncio.get_running_loop().create_future()
        unread.cancel()  # only the arrival of the answer matters
        self._statuses.append(unread)
        await self._connection.answer()

    def create(self, order: Order, listener: JobListener) -> None:
        """Create a background job, whose result is kept."""
        self._creations.append((order, listener))
        self._connection.write(wire.job_create_req(order.function, order.unique, wire.ASYNC_HANDLE, order.payload))

    def ask_status(self, handle: bytes) -> "asyncio.Future[wire.JobStatus]":
        """job_status_req."""
        return self._ask(self._statuses, wire.job_status_req(handle))

    def ask_completion(self, handle: bytes) -> "asyncio.Future[wire.Completion]":
        """job_complete_req."""
        return self._ask(self._completions, wire.job_complete_req(handle))

    def forget(self, listener: JobListener) -> None:
        """Ignore the answer to a creation."""
        if any(waiting is listener for _, waiting in self._creations):
            self._forgotten.add(listener)

    def abandon(self, error: Exception) -> list[JobListener]:
        """Close at once, fail the unanswered questions, and return the listeners of unanswered creations."""
        self._connection.abandon()
        self._ended = error
        _fail_all(self._statuses, error)
        _fail_all(self._completions, error)
        listeners = [listener for _, listener in self._creations if listener not in self._forgotten]
        self._creations.clear()
        return listeners

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    def _ask(self, questions: "deque[asyncio.Future[Answer]]", packet: bytes) -> "asyncio.Future[Answer]":
        if self._ended is not None:
            raise _broken(self._ended)
        question: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        questions.append(question)
        self._connection.write(packet)
        return question

    def _received(self, data: bytes) -> None:
        reader = self._reader
        reader.feed(data)
        while (kind := reader.next()) != wire.MORE:
            try:
                self._heard(kind, reader.body)
            except IndexError:
                raise WireError("OUT_OF_TURN", "the server sent an answer without a request") from None

    def _heard(self, kind: int, body: bytes) -> None:
        if kind == wire.JOB_CREATE_RES:
            order, listener = self._creations.popleft()
            self._created(order, listener, body)
        elif kind == wire.JOB_STATUS_RES:
            _answer(self._statuses.popleft(), wire.status(body))
            self._connection.answered()
        elif kind == wire.JOB_COMPLETE_RES:
            _answer(self._completions.popleft(), wire.completion(body))
        else:
            raise WireError("INVALID_TYPE", "the server sent a client a packet for workers")

    def _created(self, order: Order, listener: JobListener, handle: bytes) -> None:
        if listener in self._forgotten:
            self._forgotten.discard(listener)
        elif handle:
            listener.accepted(Acceptance(handle, order.function, order.unique))
        else:
            listener.refused(refusal(order))


def _answer(question: "asyncio.Future[Answer]", answer: Answer) -> None:
    if not question.done():  # may have been cancelled
        question.set_result(answer)


def _fail_all(questions: "deque[asyncio.Future[Answer]]", error: Exception) -> None:
    while questions:
        question = questions.popleft()
        if not question.done():
            question.set_exception(_broken(error))


def _broken(error: Exception) -> ServerGoneError:
    return ServerGoneError(f"the connection broke: {error}")


def ending(completion: wire.Completion) -> Event:
    """The last event of a job, from its job_complete_res."""
    if completion.code == wire.SUCCESS:
        return Completed(completion.result)
    reason = completion.result.decode("utf-8", "replace") or f"error code {completion.code}"
    return Failed(reason, completion.code, completion.result)


def refusal(order: Order) -> RefusedError:
    """The error for an empty handle, which is all that the draft sends."""
    name = order.function.decode("utf-8", "replace")
    return RefusedError(f"the server refused a job of {name!r}: its queue is full, or its disk")
