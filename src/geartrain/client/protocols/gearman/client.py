"""Gearman: a client's connection to any Gearman server, gearmand included.

The protocol has no numbers for requests: a server answers JOB_CREATED, STATUS_RES and the lines of the admin
protocol in the order of the questions, so a queue of who asked is all there is. What workers say carries the handle.
A job that was submitted twice on one connection (by its unique key) has one handle, and the server says everything
about it once for each submission, so the listeners of a handle take turns.
"""

import asyncio
import math
from collections import deque
from typing import Final

from geartrain.address import Address
from geartrain.client.job_events import Completed, Data, Event, Failed, Progressed, Warned
from geartrain.client.order import Acceptance, Order, Status
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.protocols.connection import ServerConnection
from geartrain.client.protocols.gearman import packets as packets
from geartrain.client.protocols.gearman.worker import CAPABILITIES
from geartrain.client.protocols.gearman.worker import Worker as Worker
from geartrain.errors import RefusedError, WireError
from geartrain.model import Priority
from geartrain.wire import gearman as wire

_EXCEPTIONS: Final = wire.request(wire.OPTION_REQ, b"exceptions")


class Client(ClientProtocol):
    """A client's connection."""

    capabilities = CAPABILITIES

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._connection = ServerConnection(self._received, self._broken)
        self._answers = packets.Answers()
        # Who waits for the next answers, in the order of the questions: orders with their listeners, and questions.
        self._asked: deque[tuple[Order, JobListener] | asyncio.Future[bytes]] = deque()
        self._listeners: dict[bytes, JobListener | deque[JobListener]] = {}  # of foreground jobs, by handle
        self._opened = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """What the packets have no place for."""
        if order.run_at and not order.background:
            return "gearman runs a job at a given time only in the background: add background=True"
        if order.run_at and order.priority is not Priority.NORMAL:
            return "gearman has no priority for a job that runs at a given time"
        if b"\0" in order.function or b"\0" in order.unique:
            return "a function or unique key of gearman contains no NUL"
        if len(order.unique) > wire.MAX_UNIQUE:
            return f"a unique key of gearman has at most {wire.MAX_UNIQUE} bytes, this one has {len(order.unique)}"
        return ""

    async def open(self) -> None:
        """Connect, and ask for exceptions; whatever the server answers to that, it is one."""
        await self._connection.open(self.address, self.tls)
        self._connection.write(_EXCEPTIONS)
        await self._connection.answer()
        self._opened = True

    def submit(self, order: Order, listener: JobListener) -> None:
        """SUBMIT_JOB and its kin."""
        self._asked.append((order, listener))
        if order.run_at:
            when = b"%d" % math.ceil(order.run_at)  # never early
            packet = wire.request(wire.SUBMIT_JOB_EPOCH, order.function, order.unique, when, order.payload)
        else:
            kind = packets.SUBMITS[order.background, order.priority]
            packet = packets.submission(kind, order.function, order.unique, order.payload)
        self._connection.write(packet)

    async def status(self, acceptance: Acceptance) -> Status:
        """GET_STATUS."""
        body = await self._ask(wire.request(wire.GET_STATUS, acceptance.handle))
        _, known, running, numerator, denominator = body.split(b"\0")
        return Status(known == b"1", running == b"1", wire.number(numerator), wire.number(denominator))

    async def cancel(self, acceptance: Acceptance) -> bool:
        """`cancel job` of the admin protocol, on the same connection."""
        answer = await self._ask(b"cancel job %b\r\n" % acceptance.handle)
        if answer.startswith(b"OK"):
            return True
        if answer.startswith(b"ERR UNKNOWN_JOB"):
            return False
        raise RefusedError(f"{self.address} does not cancel jobs: {answer.decode('utf-8', 'replace').strip()}")

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()
        for asked in self._asked:
            if isinstance(asked, asyncio.Future) and not asked.done():
                asked.set_exception(RefusedError("the connection was closed"))
        self._asked.clear()
        self._listeners.clear()

    async def _ask(self, question: bytes) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._connection.write(question)
        return await answer

    # What the server says

    def _received(self, data: bytes) -> None:
        answers = self._answers
        answers.feed(data)
        while True:
            kind = answers.next()
            if kind < 0:
                return
            body = answers.data[answers.start : answers.end]
            if kind == wire.JOB_CREATED:
                self._created(body)
            elif kind in _EVENTS:
                self._event(kind, body)
            elif kind == wire.ERROR:
                self._refused(body)
            elif kind in (wire.STATUS_RES, wire.TEXT):
                self._answered(body)
            elif kind == wire.OPTION_RES:
                self._connection.answered()

    def _created(self, handle: bytes) -> None:
        asked = self._next_asked()
        if not isinstance(asked, tuple):
            raise WireError("INVALID_ORDER", "the server acknowledged a job that was not submitted")
        order, listener = asked
        if not order.background:
            other = self._listeners.get(handle)
            if other is None:
                self._listeners[handle] = listener
            elif isinstance(other, deque):
                other.append(listener)
            else:
                self._listeners[handle] = deque((other, listener))
        listener.accepted(Acceptance(handle, order.function, order.unique))

    def _event(self, kind: int, body: bytes) -> None:
        handle, _, rest = body.partition(b"\0")
        over = kind in _ENDINGS
        listeners = self._listeners.pop(handle, None) if over else self._listeners.get(handle)
        if listeners is None:
            return
        listener: JobListener
        if isinstance(listeners, deque):
            listener = listeners.popleft()
            if not over:
                listeners.append(listener)
            elif listeners:
                self._listeners[handle] = listeners
        else:
            listener = listeners
        listener.event(_EVENTS[kind](rest))

    def _answered(self, body: bytes) -> None:
        asked = self._next_asked()
        if isinstance(asked, tuple):
            raise WireError("INVALID_ORDER", "the server answered what it was not asked")
        if not asked.done():
            asked.set_result(body)

    def _refused(self, body: bytes) -> None:
        """ERROR answers the oldest question; before the first, that of `open`."""
        if not self._opened and not self._asked:
            self._connection.answered()
            return
        if not self._asked:
            return
        code, _, text = body.decode("utf-8", "replace").partition("\0")
        error = RefusedError(f"{self.address} refused: {text or code} ({code})")
        asked = self._asked.popleft()
        if isinstance(asked, tuple):
            asked[1].refused(error)
        elif not asked.done():
            asked.set_exception(error)

    def _next_asked(self) -> tuple[Order, JobListener] | asyncio.Future[bytes]:
        if not self._asked:
            raise WireError("INVALID_ORDER", "the server answered what it was not asked")
        return self._asked.popleft()

    def _broken(self, error: Exception) -> None:
        asked, self._asked = self._asked, deque()
        held, self._listeners = self._listeners, {}
        for question in asked:
            if isinstance(question, tuple):
                question[1].gone(error)
            elif not question.done():
                question.set_exception(error)
        for listeners in held.values():
            for listener in listeners if isinstance(listeners, deque) else (listeners,):
                listener.gone(error)
        self.lost(error)


def _progressed(rest: bytes) -> Event:
    numerator, _, denominator = rest.partition(b"\0")
    return Progressed(_number(numerator), _number(denominator))


def _number(text: bytes) -> float:
    """Workers may send any text; fractions are common."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _failed(rest: bytes) -> Event:
    return Failed()


def _raised(rest: bytes) -> Event:
    return Failed(rest.decode("utf-8", "replace"), 1, rest)


_EVENTS: Final = {
    wire.WORK_COMPLETE: Completed,
    wire.WORK_STATUS: _progressed,
    wire.WORK_DATA: Data,
    wire.WORK_WARNING: Warned,
    wire.WORK_FAIL: _failed,
    wire.WORK_EXCEPTION: _raised,
}
_ENDINGS: Final = frozenset({wire.WORK_COMPLETE, wire.WORK_FAIL, wire.WORK_EXCEPTION})
