"""A client that speaks the 2005 draft.

Answers of the draft do not say which job they are about: only their order does, and while a job is waited for,
everything that is said on its connection is about that job. So a client has a desk, one connection where background
jobs are created and questions are asked, answered in the order of asking; and a lane for each job that is waited for,
which the next job uses when that one is over.
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
from geartrain.errors import ClientError, RefusedError, ServerGoneError, WireError
from geartrain.wire import danga as wire

CLIENT: Final = Capabilities(
    background=True, unique=True, status=True, result_later=True, progress=True, failure=True
)  # fmt: skip

# Jobs that are waited for at once: each is a connection. More wait here until a lane is free.
MOST_LANES: Final = 256
KEPT_LANES: Final = 32  # that stay open while there is nothing for them
# How long to wait before a result is asked for again: the draft cannot say that it is there.
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0

Answer = TypeVar("Answer")


class Client(ClientProtocol):
    """The desk, the lanes, and who waits for one."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._desk = AsyncConnection(self.broken)
        self._free: list[SyncConnection] = []
        self._taken: dict[JobListener, SyncConnection] = {}
        self._waiting: deque[tuple[Order, JobListener]] = deque()
        self._openings: set[asyncio.Task[None]] = set()
        self._over = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Names end with NUL here, and none is empty."""
        if b"\0" in order.unique:
            return "a unique key of the 2005 draft contains no NUL"
        return unsupported_name(order.function)

    async def open(self) -> None:
        """Connect, and ask something that every server answers."""
        await self._desk.open(self)

    def submit(self, order: Order, listener: JobListener) -> None:
        """job_create_req, at the desk or on a lane."""
        if order.background:
            self._desk.create(order, listener)
        elif self._free:
            self._give(self._free.pop(), order, listener)
        elif len(self._taken) < MOST_LANES:
            self._give(SyncConnection(self), order, listener)
        else:
            self._waiting.append((order, listener))

    async def status(self, acceptance: Acceptance) -> Status:
        """How far it is. The draft cannot tell a job that waits from one that it does not know."""
        questions = self._desk.ask_status(acceptance.handle), self._desk.ask_completion(acceptance.handle)
        (numerator, denominator, _), completion = await asyncio.gather(*questions)
        if completion.seconds:
            return Status(False)
        return Status(True, bool(numerator or denominator), numerator, denominator)

    async def result(self, acceptance: Acceptance) -> Event:
        """Ask until it is over."""
        pause = _FIRST_PAUSE
        while True:
            completion = await self._desk.ask_completion(acceptance.handle)
            if completion.seconds:
                return ending(completion)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def forget(self, listener: JobListener) -> None:
        """Hang up its lane, which tells the server that nobody waits; a job that runs is not ended by it."""
        connection = self._taken.pop(listener, None)
        if connection is not None:
            connection.hang_up()
            self._next_in_line()
            return
        self._waiting = deque(waiting for waiting in self._waiting if waiting[1] is not listener)
        self._desk.forget(listener)

    async def close(self) -> None:
        """Hang up everywhere."""
        self._over = True
        openings = list(self._openings)
        for opening in openings:
            opening.cancel()
        await asyncio.gather(*openings, return_exceptions=True)
        connections = [*self._free, *self._taken.values()]
        await asyncio.gather(self._desk.close(), *(connection.close() for connection in connections))
        self._desk.abandon(ServerGoneError("this side closed it"))
        self._free.clear()
        self._taken.clear()

    # What lanes and the desk say

    def freed(self, connection: "SyncConnection", listener: JobListener) -> None:
        """Its job is over."""
        self._taken.pop(listener, None)
        if self._waiting:
            self._give(connection, *self._waiting.popleft())
        elif len(self._free) < KEPT_LANES:
            self._free.append(connection)
        else:
            connection.hang_up()

    def broken(self, error: Exception) -> None:
        """One connection broke: the others lead to the same server, and end with it."""
        if self._over:
            return
        self._over = True
        taken, waiting = self._taken, self._waiting
        self._taken, self._waiting = {}, deque()
        for connection in (*taken.values(), *self._free):
            connection.hang_up()
        self._free.clear()
        for listener in (*taken, *(listener for _, listener in waiting), *self._desk.abandon(error)):
            listener.gone(error)
        self.lost(error)

    def _give(self, connection: "SyncConnection", order: Order, listener: JobListener) -> None:
        self._taken[listener] = connection
        connection.take(order, listener)
        if not connection.is_open:
            opening = asyncio.get_running_loop().create_task(self._open_lane(connection))
            self._openings.add(opening)
            opening.add_done_callback(self._openings.discard)

    async def _open_lane(self, connection: "SyncConnection") -> None:
        try:
            await connection.open()
        except (OSError, ClientError, WireError) as error:
            if not connection.hung_up:
                self.broken(error)

    def _next_in_line(self) -> None:
        if self._waiting and len(self._taken) < MOST_LANES:
            self._give(SyncConnection(self), *self._waiting.popleft())


class SyncConnection:
    """A connection for one job at a time that is waited for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._connection = ServerConnection(self._received, self._broken)
        self.is_open = False
        self.hung_up = False
        self._reader = wire.Reader(magic=wire.RESPONSE)
        self._order: Order | None = None
        self._listener: JobListener | None = None

    async def open(self) -> None:
        """Connect; the desk has found out that there is a server."""
        await self._connection.open(self._client.address, self._client.tls)
        if self.hung_up:
            self._connection.abandon()
            return
        self.is_open = True
        self._say()

    def take(self, order: Order, listener: JobListener) -> None:
        """Create this job, and wait for it."""
        self._order, self._listener = order, listener
        if self.is_open:
            self._say()

    def hang_up(self) -> None:
        """Nobody waits any more."""
        self.hung_up = True
        self._listener = None
        self._connection.abandon()

    async def close(self) -> None:
        """Close the connection without telling the listener."""
        await self._connection.close()

    def _say(self) -> None:
        order = self._order
        assert order is not None
        self._connection.write(wire.job_create_req(order.function, order.unique, wire.SYNC_WAIT, order.payload))

    def _received(self, data: bytes) -> None:
        reader = self._reader
        reader.feed(data)
        while (kind := reader.next()) != wire.MORE:
            listener, order = self._listener, self._order
            if listener is None or order is None:
                raise WireError("OUT_OF_TURN", "the server speaks of a job that is over")
            _HEARD[kind](self, listener, order, reader.body)

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

    def _out_of_place(self, listener: JobListener, order: Order, body: bytes) -> None:
        raise WireError("INVALID_TYPE", "the server sent a client what is for workers")

    def _end(self, listener: JobListener) -> None:
        self._order = self._listener = None
        self._client.freed(self, listener)

    def _broken(self, error: Exception) -> None:
        self._client.broken(error)


_HEARD: Final[dict[int, Callable[[SyncConnection, JobListener, Order, bytes], None]]] = {
    wire.NOOP: SyncConnection._out_of_place,
    wire.JOB_CREATE_RES: SyncConnection._created,
    wire.JOB_ASSIGN_RES: SyncConnection._out_of_place,
    wire.JOB_STATUS_RES: SyncConnection._progressed,
    wire.JOB_COMPLETE_RES: SyncConnection._completed,
}


class AsyncConnection:
    """The connection for everything that is answered at once: answers of one type come in the order of asking."""

    def __init__(self, broken: Callable[[Exception], None]) -> None:
        self._connection = ServerConnection(self._received, broken)
        self._reader = wire.Reader(magic=wire.RESPONSE)
        self._creations: deque[tuple[Order, JobListener]] = deque()
        self._forgotten: set[JobListener] = set()
        self._statuses: deque[asyncio.Future[wire.JobStatus]] = deque()
        self._completions: deque[asyncio.Future[wire.Completion]] = deque()
        self._ended: Exception | None = None  # why nothing is answered any more

    async def open(self, client: Client) -> None:
        """Connect, and ask about no job in particular."""
        await self._connection.open(client.address, client.tls)
        self._connection.write(wire.job_status_req(b""))
        unread: asyncio.Future[wire.JobStatus] = asyncio.get_running_loop().create_future()
        unread.cancel()  # the answer counts, and what it says does not
        self._statuses.append(unread)
        await self._connection.answer()

    def create(self, order: Order, listener: JobListener) -> None:
        """A background job, whose result is kept."""
        self._creations.append((order, listener))
        self._connection.write(wire.job_create_req(order.function, order.unique, wire.ASYNC_HANDLE, order.payload))

    def ask_status(self, handle: bytes) -> "asyncio.Future[wire.JobStatus]":
        """How far along is it?"""
        return self._ask(self._statuses, wire.job_status_req(handle))

    def ask_completion(self, handle: bytes) -> "asyncio.Future[wire.Completion]":
        """Is it finished?"""
        return self._ask(self._completions, wire.job_complete_req(handle))

    def forget(self, listener: JobListener) -> None:
        """Its answer is for nobody."""
        if any(waiting is listener for _, waiting in self._creations):
            self._forgotten.add(listener)

    def abandon(self, error: Exception) -> list[JobListener]:
        """Hang up; whoever asked something is told, and whoever waits for a job to be created is returned."""
        self._connection.abandon()
        self._ended = error
        _leave_open(self._statuses, error)
        _leave_open(self._completions, error)
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
                raise WireError("OUT_OF_TURN", "the server answers what was not asked") from None

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
            raise WireError("INVALID_TYPE", "the server sent a client what is for workers")

    def _created(self, order: Order, listener: JobListener, handle: bytes) -> None:
        if listener in self._forgotten:
            self._forgotten.discard(listener)
        elif handle:
            listener.accepted(Acceptance(handle, order.function, order.unique))
        else:
            listener.refused(refusal(order))


def _answer(question: "asyncio.Future[Answer]", answer: Answer) -> None:
    if not question.done():  # whoever asked may have left
        question.set_result(answer)


def _leave_open(questions: "deque[asyncio.Future[Answer]]", error: Exception) -> None:
    while questions:
        question = questions.popleft()
        if not question.done():
            question.set_exception(_broken(error))


def _broken(error: Exception) -> ServerGoneError:
    return ServerGoneError(f"the connection broke: {error}")


def ending(completion: wire.Completion) -> Event:
    """What a job_complete_res means."""
    if completion.code == wire.SUCCESS:
        return Completed(completion.result)
    reason = completion.result.decode("utf-8", "replace") or f"it failed with code {completion.code}"
    return Failed(reason, completion.code, completion.result)


def refusal(order: Order) -> RefusedError:
    """An empty handle: the draft does not say more."""
    name = order.function.decode("utf-8", "replace")
    return RefusedError(f"the server did not take a job for {name!r}: its queue is full, or its disk")
