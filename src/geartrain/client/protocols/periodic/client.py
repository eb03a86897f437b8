"""A client of Periodic, in the current dialect.

A job is identified by its function and its name. The unique key is the name; a job without one gets a random name.
Submitting a name again replaces the job that waits under it.

RUN_JOB is answered only when the job has ended; RECV_DATA, which asks for the parts of the result, is answered at once.
So a foreground job is submitted with both: first RECV_DATA, whose answer is the acknowledgement, then RUN_JOB. A
failure is reported in place of a result, as `failed`, `removed` or `expired`, and looks like a result of this text.
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
    b"expired": "it did not finish in time",
}


class Client(ClientProtocol):
    """A client whose submissions are identified by their message ids."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._session = Session(address, self._broken)
        self._submissions: dict[JobListener, PeriodicSubmission] = {}
        self._removals: set[asyncio.Future[bool]] = set()
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._over = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """The length of a name is one byte."""
        return too_long(order.function, "function") or too_long(order.unique, "unique key")

    async def open(self) -> None:
        """Connect and register as a client."""
        await self._session.open(wire.CLIENT, b"", self.tls, self.token)

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
        submission = self._submissions[listener] = PeriodicSubmission(
            self, listener, Acceptance(name, order.function, name)
        )
        if order.background:
            submission.ids = (self._session.ask(wire.SUBMIT_JOB, job, submission.submitted),)
        else:
            parts = self._session.ask(wire.RECV_DATA, job, submission.part)
            submission.ids = (parts, self._session.ask(wire.RUN_JOB, job, submission.ran))

    async def cancel(self, acceptance: Acceptance) -> bool:
        """REMOVE_JOB, whose answer does not say whether there was one."""
        if self._over:
            raise ServerGoneError("the connection is closed")
        removed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._removals.add(removed)

        def answered(command: int, arguments: wire.Arguments) -> None:
            del self._session.waiting[removal]
            if not removed.done():
                removed.set_result(command == wire.SUCCESS)

        removal = self._session.ask(
            wire.REMOVE_JOB, periodic_client.handle(acceptance.function, acceptance.unique), answered
        )
        try:
            return await removed
        finally:
            self._removals.discard(removed)

    def control_name(self, acceptance: Acceptance) -> dict[str, bytes | int]:
        """A job is named by its function and its name; a handle without a function is the server's own."""
        if not acceptance.function:
            return super().control_name(acceptance)
        name = acceptance.unique or acceptance.handle
        return {"function": acceptance.function, "unique": name}

    def forget(self, listener: JobListener) -> None:
        """The protocol has no command for it: REMOVE_JOB would take the job from other clients of the same name."""
        submission = self._submissions.get(listener)
        if submission is not None:
            self.over(submission)

    async def close(self) -> None:
        """Close the connection."""
        self._submissions.clear()
        await self._session.close()
        self._fail_removals("this side closed the connection")

    def over(self, submission: "PeriodicSubmission") -> None:
        """Expect no more answers to a submission."""
        self._submissions.pop(submission.listener, None)
        for id in submission.ids:
            self._session.waiting.pop(id, None)

    def _broken(self, error: Exception) -> None:
        listeners, self._submissions = list(self._submissions), {}
        self._fail_removals(str(error))
        for listener in listeners:
            listener.gone(error)
        self.lost(error)

    def _fail_removals(self, why: str) -> None:
        self._over = True
        for removed in self._removals:
            if not removed.done():
                removed.set_exception(ServerGoneError(f"the connection broke before the answer: {why}"))


class PeriodicSubmission:
    """One order on its way, and the handlers of its answers."""

    __slots__ = ("_accepted", "_client", "_maybe_end", "acceptance", "ids", "listener")

    def __init__(self, client: Client, listener: JobListener, acceptance: Acceptance) -> None:
        self._client = client
        self.listener = listener
        self.acceptance = acceptance
        self.ids: tuple[int, ...] = ()  # of its requests
        self._accepted = False
        self._maybe_end = False  # the last part was EOF: the end of data, or a part of this text

    def submitted(self, command: int, arguments: wire.Arguments) -> None:
        """Handle the answer to SUBMIT_JOB."""
        self._client.over(self)
        if command == wire.SUCCESS:
            self.listener.accepted(self.acceptance)
        else:
            self.listener.refused(RefusedError(f"the server refused a job of {self._function!r}"))

    def part(self, command: int, arguments: wire.Arguments) -> None:
        """Handle an answer to RECV_DATA."""
        if command == wire.DATA:
            self._pass_on(arguments.rest())
        elif command == wire.NO_WORKER:
            self._client.over(self)
            self.listener.refused(self._no_worker())
        else:
            self._accept()  # an older server does not know the command, and may still run the job

    def ran(self, command: int, arguments: wire.Arguments) -> None:
        """Handle the answer to RUN_JOB."""
        self._client.over(self)
        if command != wire.DATA and not self._accepted:
            self.listener.refused(self._no_worker())
            return
        self._accept()
        self.listener.event(
            _ending(arguments.rest()) if command == wire.DATA else Failed("the server did not run the job")
        )

    def _accept(self) -> None:
        if not self._accepted:
            self._accepted = True
            self.listener.accepted(self.acceptance)

    def _pass_on(self, data: bytes) -> None:
        self._accept()
        if self._maybe_end:
            self.listener.event(Data(_END_OF_DATA))
        self._maybe_end = data == _END_OF_DATA
        if not self._maybe_end:
            self.listener.event(Data(data))

    @property
    def _function(self) -> str:
        return self.acceptance.function.decode("utf-8", "replace")

    def _no_worker(self) -> NoWorkersError:
        return NoWorkersError(
            f"no worker is registered for {self._function!r}, and a Periodic server does not wait for one"
        )


def _ending(result: bytes) -> Event:
    reason = _WITHOUT_RESULT.get(result)
    return Completed(result) if reason is None else Failed(reason)
