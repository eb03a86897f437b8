"""A submitted job, as its client holds it: its result, its events, its status.

It is the listener of its own order: the protocol calls it, and it wakes the tasks that wait. So a job costs one object
and one future, and no task.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from geartrain.client import arguments
from geartrain.client.job_events import Completed, Event, Failed, Progressed
from geartrain.client.order import Acceptance, Order, Status
from geartrain.errors import ClientError, JobFailedError, JobTimeoutError, UnsupportedError

if TYPE_CHECKING:
    from geartrain.client.async_client import AsyncClient
    from geartrain.client.server_pool import PooledServer


class Acknowledgements:
    """Counts the answers to many submissions, so that one future serves all of them."""

    __slots__ = ("_enough", "_wake", "pending")

    def __init__(self) -> None:
        self.pending = 0
        self._enough = 0
        self._wake: asyncio.Future[None] | None = None

    def came(self) -> None:
        """One more has been answered."""
        self.pending -= 1
        if self._wake is not None and self.pending <= self._enough and not self._wake.done():
            self._wake.set_result(None)

    async def until(self, pending: int) -> None:
        """Wait until no more than so many are pending."""
        if self.pending > pending:
            self._enough = pending
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
            self._wake = None


class AsyncJob:
    """What `AsyncClient.submit` returns. Made by the client only."""

    __slots__ = (
        "_acceptance",
        "_accepted",
        "_client",
        "_ending",
        "_error",
        "_events",
        "_many",
        "_resubmit",
        "_waiters",
        "order",
        "pooled_server",
    )  # fmt: skip

    def __init__(self, client: "AsyncClient", order: Order, resubmit: bool) -> None:
        self.order = order
        self.pooled_server: PooledServer | None = None  # the server that has it
        self._client = client
        self._resubmit = resubmit
        self._acceptance: Acceptance | None = None
        self._accepted: asyncio.Future[None] | None = None  # who waits for the acknowledgement
        self._many: Acknowledgements | None = None  # or who counts it
        self._events: deque[Event] | None = None  # heard, and not yet given to anybody
        self._ending: Event | None = None  # Completed or Failed
        self._error: Exception | None = None  # why nothing more will be heard
        self._waiters: list[asyncio.Future[None]] | None = None  # woken by every event

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.function} {self.handle or 'not acknowledged'}>"

    @property
    def handle(self) -> str:
        """What the server calls it; empty where the protocol has no handles."""
        return arguments.decoded(self._acceptance.handle) if self._acceptance is not None else ""

    @property
    def function(self) -> str:
        return arguments.decoded(self.order.function)

    @property
    def unique(self) -> str:
        return arguments.decoded(self._acceptance.unique if self._acceptance is not None else self.order.unique)

    @property
    def background(self) -> bool:
        return self.order.background

    @property
    def server(self) -> str:
        """The URL of the server that has it."""
        return str(self.pooled_server.address) if self.pooled_server is not None else ""

    @property
    def done(self) -> bool:
        """Whether its end has been heard."""
        return self._ending is not None

    async def result(self, timeout: float | None = None) -> bytes:
        """Wait for the result. JobFailedError: it failed; JobTimeoutError: it goes on, and may be asked for again."""
        if self._ending is None:
            if timeout is None:
                await self._until_over()
            else:
                await self._until_over_or(timeout)
        ending = self._ending
        if isinstance(ending, Completed):
            return ending.result
        assert isinstance(ending, Failed)
        raise JobFailedError(self._words(ending), ending.reason, ending.code, ending.data)

    def events(self) -> AsyncIterator[Event]:
        """What is heard of it, from the submission on: each event once, Completed or Failed last.

        Unread reports of progress give way to the newest.
        """
        if self.background:
            raise UnsupportedError("nobody hears of a background job while it runs; submit it with background=False")
        return self._listen()

    async def _listen(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                yield self._events.popleft()
            if self._ending is not None:
                return
            await self._news()

    async def status(self) -> Status:
        """What the server knows of it now."""
        return await self._client._status(self)

    async def cancel(self) -> bool:
        """End it; whether there was something to end."""
        return await self._client._cancel(self)

    def forget(self) -> None:
        """Wait for it no longer; a foreground job that nobody waits for may never run."""
        self._client._forget(self)
        self._fail(ClientError(f"{self._name()} is not waited for any more"))

    # What the link calls

    def accepted(self, acceptance: Acceptance) -> None:
        """The server has it."""
        self._acceptance = acceptance
        if self.order.background:
            self._client._open.discard(self)
        self._acknowledged()

    def refused(self, error: Exception) -> None:
        """The server does not take it."""
        self._fail(error)

    def event(self, event: Event) -> None:
        """News of it."""
        if self._error is not None:
            return
        if isinstance(event, Completed | Failed):
            self._ending = event
            self._client._open.discard(self)
        events = self._events
        if events is None:
            events = self._events = deque()
        elif events and type(event) is Progressed and type(events[-1]) is Progressed:
            events.pop()
        events.append(event)
        if self._waiters:
            self._wake()

    def gone(self, error: Exception) -> None:
        """The connection broke: the client submits it again if it may, or it is lost."""
        if self._error is None:
            self._client._gone(self, error)

    # What the client uses

    @property
    def may_be_resubmitted(self) -> bool:
        """Whether the caller allows that it runs twice; with a unique key only until it was acknowledged."""
        return self._resubmit or (self._acceptance is None and bool(self.order.unique))

    async def acknowledged(self) -> None:
        """Wait until the server has it; a link whose protocol has no acknowledgements has said so already."""
        if self._error is not None:
            raise self._error
        if self._acceptance is None:
            self._accepted = asyncio.get_running_loop().create_future()
            await self._accepted

    def count_with(self, many: Acknowledgements) -> None:
        """Have the acknowledgement counted."""
        many.pending += 1
        self._many = many

    @property
    def trouble(self) -> Exception | None:
        """Why nothing more will be heard."""
        return self._error

    def _fail(self, error: Exception) -> None:
        if self._ending is not None or self._error is not None:
            return
        self._error = error
        self._client._open.discard(self)
        self._acknowledged(error)
        if self._waiters:
            self._wake()

    def _acknowledged(self, error: Exception | None = None) -> None:
        accepted, self._accepted = self._accepted, None
        if accepted is not None and not accepted.done():
            if error is None:
                accepted.set_result(None)
            else:
                accepted.set_exception(error)
        many, self._many = self._many, None
        if many is not None:
            many.came()

    async def _until_over_or(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._until_over()
        except TimeoutError:
            raise JobTimeoutError(f"{self._name()} did not finish within {timeout:g} seconds") from None

    async def _until_over(self) -> None:
        if self.background:
            self._ending = await self._client._result(self)
        while self._ending is None:
            await self._news()

    async def _news(self) -> None:
        """Wait for the next event."""
        if self._error is not None:
            raise self._error
        waiter = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if self._error is not None and self._ending is None and not self._events:
            raise self._error

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters or [], []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _name(self) -> str:
        return f"job {self.handle or '(no handle)'} of {self.function!r}"

    def _words(self, ending: Failed) -> str:
        reason = ending.reason or ending.data.decode("utf-8", "replace")
        return f"{self._name()} failed" + (f": {reason}" if reason else "")
