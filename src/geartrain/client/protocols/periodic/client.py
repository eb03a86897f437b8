"""A client of Periodic, in today's dialect.

A job is its function and its name. The unique key is the name, and a job without one gets a name that nobody else
has. Submitting a name again replaces the job that waits under it.

RUN_JOB is answered only when the job is over, and RECV_DATA, which asks for the parts of the result, at once. So
a job that is waited for is asked for with both, in this order, and the answer to the first says that it was accepted.
What ends a job is a word where a result could be: `failed`, `removed` and `expired` are taken for the end of a job
that has none, as nothing else tells one from the other.
"""

import asyncio
import itertools
import math
import secrets
from typing import Final

from geartrain.address import Address
from geartrain.client.job_events import Completed, Data, Event, Failed
from geartrain.client.order import Acceptance, Capabilities, Order
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.protocols.periodic.session import Session, too_long
from geartrain.errors import NoWorkersError, RefusedError, ServerGoneError
from geartrain.wire import periodic as wire
from geartrain.wire import periodic_client

CLIENT: Final = Capabilities(
    background=True, unique=True, run_at=True, timeout=True, cancel=True, data=True, failure=True
)  # fmt: skip

_END_OF_DATA: Final = b"EOF"
_WITHOUT_RESULT: Final = {
    b"failed": "its worker failed",
    b"removed": "it was removed",
    b"expired": "it was not finished in its time",
}


class Client(ClientProtocol):
    """Jobs by message id."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._session = Session(address, self._broken)
        self._errands: dict[JobListener, Request] = {}
        self._questions: set[asyncio.Future[bool]] = set()
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._over = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Names have one byte for their length."""
        return too_long(order.function, "function") or too_long(order.unique, "unique key")

    async def open(self) -> None:
        """Connect and come in."""
        await self._session.open(wire.CLIENT, b"", self.tls)

    def submit(self, order: Order, listener: JobListener) -> None:
        """SUBMIT_JOB, or RECV_DATA and RUN_JOB."""
        name = order.unique or f"{self._prefix}-{next(self._numbers)}".encode()
        job = wire.job(
            wire.PeriodicJob(
                order.function,
                name,
                order.payload,
                math.ceil(order.run_at),
                timeout=min(math.ceil(order.timeout), periodic_client.LONGEST_TIMEOUT),
            )
        )
        errand = self._errands[listener] = Request(self, listener, Acceptance(name, order.function, name))
        if order.background:
            errand.ids = (self._session.ask(wire.SUBMIT_JOB, job, errand.submitted),)
        else:
            parts = self._session.ask(wire.RECV_DATA, job, errand.part)
            errand.ids = (parts, self._session.ask(wire.RUN_JOB, job, errand.ran))

    async def cancel(self, acceptance: Acceptance) -> bool:
        """REMOVE_JOB, whose answer does not say whether there was one."""
        if self._over:
            raise ServerGoneError("the connection is closed")
        question: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._questions.add(question)

        def removed(command: int, arguments: wire.Arguments) -> None:
            del self._session.waiting[removal]
            if not question.done():
                question.set_result(command == wire.SUCCESS)

        removal = self._session.ask(
            wire.REMOVE_JOB, periodic_client.handle(acceptance.function, acceptance.unique), removed
        )
        try:
            return await question
        finally:
            self._questions.discard(question)

    def forget(self, listener: JobListener) -> None:
        """The protocol has no word for it: to remove the job would take it from others who wait for its name."""
        errand = self._errands.get(listener)
        if errand is not None:
            self.over(errand)

    async def close(self) -> None:
        """Hang up."""
        self._errands.clear()
        await self._session.close()
        self._leave_open("this side closed it")

    def over(self, errand: "Request") -> None:
        """Nothing more is heard of it."""
        self._errands.pop(errand.listener, None)
        for id in errand.ids:
            self._session.waiting.pop(id, None)

    def _broken(self, error: Exception) -> None:
        listeners, self._errands = list(self._errands), {}
        self._leave_open(str(error))
        for listener in listeners:
            listener.gone(error)
        self.lost(error)

    def _leave_open(self, why: str) -> None:
        self._over = True
        for question in self._questions:
            if not question.done():
                question.set_exception(ServerGoneError(f"the connection broke before the answer: {why}"))


class Request:
    """One order on its way, and what its answers mean."""

    __slots__ = ("_accepted", "_client", "_perhaps_end", "acceptance", "ids", "listener")

    def __init__(self, client: Client, listener: JobListener, acceptance: Acceptance) -> None:
        self._client = client
        self.listener = listener
        self.acceptance = acceptance
        self.ids: tuple[int, ...] = ()  # of its messages
        self._accepted = False
        self._perhaps_end = False  # the last part said EOF: the end, or a part that happens to be the same

    def submitted(self, command: int, arguments: wire.Arguments) -> None:
        """The answer to SUBMIT_JOB."""
        self._client.over(self)
        if command == wire.SUCCESS:
            self.listener.accepted(self.acceptance)
        else:
            self.listener.refused(RefusedError(f"the server did not take a job for {self._function!r}"))

    def part(self, command: int, arguments: wire.Arguments) -> None:
        """An answer to RECV_DATA."""
        if command == wire.DATA:
            self._pass_on(arguments.rest())
        elif command == wire.NO_WORKER:
            self._client.over(self)
            self.listener.refused(self._nobody())
        else:
            self._accept()  # also when an older server does not know the command: it may still run the job

    def ran(self, command: int, arguments: wire.Arguments) -> None:
        """The answer to RUN_JOB."""
        self._client.over(self)
        if command != wire.DATA and not self._accepted:
            self.listener.refused(self._nobody())
            return
        self._accept()
        self.listener.event(_ending(arguments.rest()) if command == wire.DATA else Failed("the server did not run it"))

    def _accept(self) -> None:
        if not self._accepted:
            self._accepted = True
            self.listener.accepted(self.acceptance)

    def _pass_on(self, data: bytes) -> None:
        self._accept()
        if self._perhaps_end:
            self.listener.event(Data(_END_OF_DATA))
        self._perhaps_end = data == _END_OF_DATA
        if not self._perhaps_end:
            self.listener.event(Data(data))

    @property
    def _function(self) -> str:
        return self.acceptance.function.decode("utf-8", "replace")

    def _nobody(self) -> NoWorkersError:
        return NoWorkersError(f"nobody offers {self._function!r}, and a Periodic server does not wait for one who does")


def _ending(result: bytes) -> Event:
    reason = _WITHOUT_RESULT.get(result)
    return Completed(result) if reason is None else Failed(reason)
