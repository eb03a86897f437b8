"""Gearman: a client's connection to any Gearman server, gearmand included.

The protocol does not number requests: a server answers with JOB_CREATED, STATUS_RES and the lines of the admin protocol
in the order of the requests, so a queue of requests is enough. Events carry the job's handle. A job that was submitted
twice on one connection (with the same unique key) has one handle, and the server sends every event once for each
submission, so the listeners of a handle take turns.
"""

import asyncio
import math
from collections import deque
from typing import Final

from geartrain.address import Address
from geartrain.client.job_events import Completed, Data, Event, Failed, Progressed, Warned
from geartrain.client.order import PARTITION_FROM_UNIQUE, Acceptance, Order, Status
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.protocols.connection import ServerConnection
from geartrain.client.protocols.gearman.authentication import Authentication
from geartrain.client.protocols.gearman.worker import CAPABILITIES
from geartrain.errors import RefusedError, ServerGoneError, WireError
from geartrain.model import Priority
from geartrain.wire import gearman as wire
from geartrain.wire import gearman_client

_OPTIONS: Final = (wire.GEARTRAIN, b"exceptions")


class Client(ClientProtocol):
    """A client's connection, with the unanswered requests and the listeners of foreground jobs."""

    capabilities = CAPABILITIES

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._connection = ServerConnection(self._received, self._broken)
        self._authentication = Authentication(address, self._connection)
        self._answers = gearman_client.AnswerReader()
        # Unanswered requests, in the order of sending: orders with their listeners, and futures of other requests.
        self._unanswered: deque[tuple[Order, JobListener] | asyncio.Future[bytes]] = deque()
        self._listeners: dict[bytes, JobListener | deque[JobListener]] = {}  # of foreground jobs, by handle
        self._forgotten: set[JobListener] = set()  # those of them that are not called any more
        self._opened = False
        self._options_answered = 0
        self._end: Exception | None = None  # why requests are not answered any more

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Names end with NUL, and SUBMIT_JOB_EPOCH has neither priorities nor foreground jobs."""
        if order.run_at and not order.background:
            return "gearman runs a job at a given time only in the background: add background=True"
        if order.expires_at and not order.background:
            return "over gearman only a background job can expire: add background=True, or use http"
        if order.partition and not order.background:
            return (
                "over gearman only a background job can have a partition: add background=True, or use http; "
                f"or {PARTITION_FROM_UNIQUE}"
            )
        if order.after and not order.background:
            return "over gearman only a background job can wait for others: add background=True, or use http"
        if order.run_at and order.priority is not Priority.NORMAL:
            return "gearman has no priority for a job that runs at a given time"
        if b"\0" in order.function or b"\0" in order.unique:
            return "a function or unique key of gearman contains no NUL"
        if len(order.unique) > wire.MAX_UNIQUE:
            return f"a unique key of gearman has at most {wire.MAX_UNIQUE} bytes, this one has {len(order.unique)}"
        return ""

    def needs_control(self, order: Order) -> bool:
        """A time to live, how long a record is kept, a partition, and other jobs: Gearman has no fields for them."""
        return order.expires_at != 0.0 or order.keep_for != 0.0 or order.partition != b"" or order.after != ()

    async def open(self) -> None:
        """Connect, and ask for options: any Gearman server answers this, if only with errors."""
        await self._connection.open(self.address, self.tls)
        await self._authentication.perform(self.token)
        self.is_geartrain = False
        for option in _OPTIONS:
            self._connection.write(wire.request(wire.OPTION_REQ, option))
        await self._connection.answer()
        self._opened = True

    def submit(self, order: Order, listener: JobListener) -> None:
        """One of the SUBMIT_JOB gearman_client."""
        self._unanswered.append((order, listener))
        if order.run_at:
            when = b"%d" % math.ceil(order.run_at)  # never early
            packet = wire.request(wire.SUBMIT_JOB_EPOCH, order.function, order.unique, when, order.payload)
        else:
            kind = gearman_client.SUBMITS[order.background, order.priority]
            packet = gearman_client.submission(kind, order.function, order.unique, order.payload)
        self._connection.write(packet)

    async def status(self, acceptance: Acceptance) -> Status:
        """GET_STATUS."""
        body = await self._ask(wire.request(wire.GET_STATUS, acceptance.handle))
        _, known, running, numerator, denominator = body.split(b"\0")
        progress = (wire.number(numerator), wire.number(denominator))
        if known != b"1":
            return Status(False, False, *progress)
        return Status(True, running == b"1", *progress, "running" if running == b"1" else "queued")

    async def cancel(self, acceptance: Acceptance) -> bool:
        """`cancel job` of the admin protocol, on the same connection."""
        answer = await self._ask(b"cancel job %b\r\n" % acceptance.handle)
        if answer.startswith(b"OK"):
            return True
        if answer.startswith(b"ERR UNKNOWN_JOB"):
            return False
        raise RefusedError(f"{self.address} does not cancel jobs: {answer.decode('utf-8', 'replace').strip()}")

    def forget(self, listener: JobListener) -> None:
        """The protocol has no message for it. The listener keeps its place: answers are matched by their order."""
        self._forgotten.add(listener)

    async def close(self) -> None:
        """Close the connection, and fail the unanswered requests."""
        self._end = ServerGoneError("this side closed the connection")
        await self._connection.close()
        for request in self._unanswered:
            if isinstance(request, asyncio.Future) and not request.done():
                request.set_exception(self._end)
        self._unanswered.clear()
        self._listeners.clear()
        self._forgotten.clear()

    async def _ask(self, packet: bytes) -> bytes:
        if self._end is not None:
            raise ServerGoneError(f"the connection to {self.address} has ended: {self._end}")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._unanswered.append(answer)
        self._connection.write(packet)
        return await answer

    # Called with what arrives

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
            elif self._authentication.pending:
                self._authentication.received(body)
            elif kind == wire.ERROR:
                self._refused(body)
            elif kind in (wire.STATUS_RES, wire.TEXT):
                self._answered(body)
            elif kind == wire.OPTION_RES:
                self._option_answered(body)

    def _option_answered(self, option: bytes = b"") -> None:
        """An option was set or refused; the last one ends `open`."""
        self._options_answered += 1
        if option == wire.GEARTRAIN:
            self.is_geartrain = True
        if option == _OPTIONS[-1] or self._options_answered == len(_OPTIONS):
            self._connection.answered()

    def _created(self, handle: bytes) -> None:
        request = self._next_unanswered()
        if not isinstance(request, tuple):
            raise WireError("INVALID_ORDER", "the server acknowledged a job that was not submitted")
        order, listener = request
        if not order.background:
            other = self._listeners.get(handle)
            if other is None:
                self._listeners[handle] = listener
            elif isinstance(other, deque):
                other.append(listener)
            else:
                self._listeners[handle] = deque((other, listener))
        if self._is_waiting(listener, last=order.background):
            listener.accepted(Acceptance(handle, order.function, order.unique))

    def _event(self, kind: int, body: bytes) -> None:
        handle, _, rest = body.partition(b"\0")
        ended = kind in _ENDINGS
        listeners = self._listeners.pop(handle, None) if ended else self._listeners.get(handle)
        if listeners is None:
            return
        listener: JobListener
        if isinstance(listeners, deque):
            listener = listeners.popleft()
            if not ended:
                listeners.append(listener)
            elif listeners:
                self._listeners[handle] = listeners
        else:
            listener = listeners
        if self._is_waiting(listener, last=ended):
            listener.event(_EVENTS[kind](rest))

    def _is_waiting(self, listener: JobListener, last: bool) -> bool:
        """Whether a listener was not forgotten; with its last call it need not be remembered any longer."""
        if listener not in self._forgotten:
            return True
        if last:
            self._forgotten.discard(listener)
        return False

    def _answered(self, body: bytes) -> None:
        request = self._next_unanswered()
        if isinstance(request, tuple):
            raise WireError("INVALID_ORDER", "the server sent an answer without a request")
        if not request.done():
            request.set_result(body)

    def _refused(self, body: bytes) -> None:
        """ERROR answers the oldest request, or the one of `open`."""
        if not self._opened and not self._unanswered:
            self._option_answered()
            return
        if not self._unanswered:
            return
        code, _, text = body.decode("utf-8", "replace").partition("\0")
        error = RefusedError(f"{self.address} refused: {text or code} ({code})")
        request = self._unanswered.popleft()
        if isinstance(request, tuple):
            if self._is_waiting(request[1], last=True):
                request[1].refused(error)
        elif not request.done():
            request.set_exception(error)

    def _next_unanswered(self) -> tuple[Order, JobListener] | asyncio.Future[bytes]:
        if not self._unanswered:
            raise WireError("INVALID_ORDER", "the server sent an answer without a request")
        return self._unanswered.popleft()

    def _broken(self, error: Exception) -> None:
        requests, self._unanswered = self._unanswered, deque()
        by_handle, self._listeners = self._listeners, {}
        self._end = error
        waiting: list[JobListener] = []
        for request in requests:
            if isinstance(request, tuple):
                waiting.append(request[1])
            elif not request.done():
                request.set_exception(error)
        for listeners in by_handle.values():
            waiting += listeners if isinstance(listeners, deque) else (listeners,)
        for listener in waiting:
            if self._is_waiting(listener, last=True):
                listener.gone(error)
        self.lost(error)


def _progressed(rest: bytes) -> Event:
    numerator, _, denominator = rest.partition(b"\0")
    return Progressed(_number(numerator), _number(denominator))


def _number(text: bytes) -> float:
    """Workers may send any text; some send fractions."""
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
