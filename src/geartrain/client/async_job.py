"""A submitted job, as its client holds it: its result, its events, its status.

A job is the listener of its own order: the protocol calls it, and it wakes the tasks that wait. So a job costs one
object and one future, and no task.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from geartrain.client import arguments
from geartrain.client.job_events import Completed, Event, Failed, Progressed
from geartrain.client.order import Acceptance, Order, Status
from geartrain.errors import ClientError, ExpiredError, JobFailedError, JobTimeoutError

if TYPE_CHECKING:
    from geartrain.client.server_pool import PooledServer
    from geartrain.client.submissions import Submissions


class UnacknowledgedCount:
    """Counts the submissions of one `submit_many` that are not acknowledged, so that one future serves all of them."""

    __slots__ = ("_limit", "_reached", "count")

    def __init__(self) -> None:
        self.count = 0
        self._limit = 0
        self._reached: asyncio.Future[None] | None = None

    def decrement(self) -> None:
        """One more was acknowledged, or failed."""
        self.count -= 1
        if self._reached is not None and self.count <= self._limit and not self._reached.done():
            self._reached.set_result(None)

    async def at_most(self, limit: int) -> None:
        """Wait until no more than `limit` are left."""
        if self.count > limit:
            self._limit = limit
            self._reached = asyncio.get_running_loop().create_future()
            await self._reached
            self._reached = None


class AsyncJob:
    """A job that `AsyncClient.submit` submitted.

    job = await client.submit("resize", image)
    async for event in job.events():
        print(event)
    thumbnail = await job.result(timeout=60)
    """

    __slots__ = (
        "_accepted", "_count", "_ending", "_events", "_resubmit", "_submissions", "_waiters",
        "acceptance", "assigned_to", "error", "order",
    )  # fmt: skip

    def __init__(self, submissions: "Submissions", order: Order, resubmit: bool | None) -> None:
        self.order = order
        self.acceptance: Acceptance | None = None  # the server's acknowledgement
        self.assigned_to: PooledServer | None = None  # the server that has the job
        self.error: Exception | None = None  # why no more events will arrive
        self._submissions = submissions
        self._resubmit = resubmit
        self._accepted: asyncio.Future[None] | None = None  # set by the acknowledgement, while `submit` waits
        self._count: UnacknowledgedCount | None = None  # decremented by the acknowledgement, for `submit_many`
        self._events: deque[Event] | None = None  # not read yet
        self._ending: Event | None = None  # Completed or Failed
        self._waiters: list[asyncio.Future[None]] | None = None  # woken by every event

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.function} {self.handle or 'not acknowledged'}>"

    @property
    def handle(self) -> str:
        """The server's name for the job; empty where the protocol has no handles."""
        return arguments.decoded(self.acceptance.handle) if self.acceptance is not None else ""

    @property
    def function(self) -> str:
        return arguments.decoded(self.order.function)

    @property
    def unique(self) -> str:
        return arguments.decoded(self.acceptance.unique if self.acceptance is not None else self.order.unique)

    @property
    def background(self) -> bool:
        return self.order.background

    @property
    def server(self) -> str:
        """The URL of the server that has the job."""
        return str(self.assigned_to.address) if self.assigned_to is not None else ""

    @property
    def done(self) -> bool:
        """Whether the job's last event has arrived."""
        return self._ending is not None

    async def result(self, timeout: float | None = None) -> bytes:
        """Wait for the result.

        A JobFailedError says that the job failed, an ExpiredError that no worker got it in time. A JobTimeoutError
        says that it did not end within `timeout` seconds; it goes on, and `result` can be called again.
        """
        # A background job that failed may have been retried.
        if self._ending is None or (self.background and isinstance(self._ending, Failed)):
            if timeout is None:
                await self._wait_for_end()
            else:
                await self._wait_for_end_within(timeout)
        ending = self._ending
        if isinstance(ending, Completed):
            return ending.result
        assert isinstance(ending, Failed)
        error = ExpiredError if ending.state == "expired" else JobFailedError
        raise error(self._failure_text(ending), ending.reason, ending.code, ending.data)

    def events(self) -> AsyncIterator[Event]:
        """Iterate over the job's events: each once, Completed or Failed last.

        Those of a foreground job are since its submission; a progress report that was not read is replaced by the next
        one. Those of a background job are from now on, beginning with its last progress, at a Geartrain server over
        gearman, periodic, gearmonkey and http; over danga and memodb there is only the end.
        """
        return self._follow() if self.background else self._iterate()

    async def _follow(self) -> AsyncIterator[Event]:
        if isinstance(self._ending, Completed):
            yield self._ending
            return
        async for event in self._submissions.events(self):
            if isinstance(event, Completed | Failed):
                self._ending = event
            yield event

    async def _iterate(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                yield self._events.popleft()
            if self._ending is not None:
                return
            await self._next_event()

    async def status(self) -> Status:
        """Ask the server for the job's status, before or after its end."""
        return await self._submissions.status(self)

    async def log(self) -> bytes:
        """The log that a worker has kept with a background job, at a Geartrain server; empty if there is none."""
        return await self._submissions.log(self)

    async def cancel(self) -> bool:
        """Cancel the job; false if there was none to cancel."""
        return await self._submissions.cancel(self)

    async def retry(self) -> bool:
        """Run a dead or failed background job again, at a Geartrain server; false if it has not failed."""
        return await self._submissions.retry(self)

    def forget(self) -> None:
        """Stop waiting for the job. A foreground job that no client waits for may never run."""
        self._submissions.forget(self)
        self.give_up(ClientError(f"{self._name()} is not waited for any more"))

    # Called by the protocol: see JobListener

    def accepted(self, acceptance: Acceptance) -> None:
        """The server has the job."""
        self.acceptance = acceptance
        if self.order.background:
            self._submissions.over(self)
        self._set_acknowledged()

    def refused(self, error: Exception) -> None:
        """The server does not take the job."""
        self.give_up(error)

    def event(self, event: Event) -> None:
        """Queue an event, and wake the tasks that wait for one."""
        if self.error is not None:
            return
        if isinstance(event, Completed | Failed):
            self._ending = event
            self._submissions.over(self)
        events = self._events
        if events is None:
            events = self._events = deque()
        elif events and type(event) is Progressed and type(events[-1]) is Progressed:
            events.pop()
        events.append(event)
        if self._waiters:
            self._wake()

    def gone(self, error: Exception) -> None:
        """The connection broke: the job is submitted again, or its waiters get an error."""
        if self.error is None:
            self._submissions.connection_lost(self, error)

    # Called by the client

    @property
    def may_be_resubmitted(self) -> bool:
        """Whether the caller allows a second run; with a unique key, only before the job was acknowledged."""
        if self._resubmit is None:
            return False
        return self._resubmit or (self.acceptance is None and bool(self.order.unique))

    async def acknowledged(self) -> None:
        """Wait for the acknowledgement. A protocol without one has called `accepted` already."""
        if self.error is not None:
            raise self.error
        if self.acceptance is None:
            self._accepted = asyncio.get_running_loop().create_future()
            await self._accepted

    def count_in(self, count: UnacknowledgedCount) -> None:
        """Count this job until it is acknowledged."""
        count.count += 1
        self._count = count

    def give_up(self, error: Exception) -> None:
        """Expect no more events: everything that waits for this job raises the error."""
        if self._ending is not None or self.error is not None:
            return
        self.error = error
        self._submissions.over(self)
        self._set_acknowledged(error)
        if self._waiters:
            self._wake()

    def _set_acknowledged(self, error: Exception | None = None) -> None:
        accepted, self._accepted = self._accepted, None
        if accepted is not None and not accepted.done():
            if error is None:
                accepted.set_result(None)
            else:
                accepted.set_exception(error)
        count, self._count = self._count, None
        if count is not None:
            count.decrement()

    async def _wait_for_end_within(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._wait_for_end()
        except TimeoutError:
            raise JobTimeoutError(f"{self._name()} did not finish within {timeout:g} seconds") from None

    async def _wait_for_end(self) -> None:
        if self.background:
            self._ending = await self._submissions.result(self)
        while self._ending is None:
            await self._next_event()

    async def _next_event(self) -> None:
        if self.error is not None:
            raise self.error
        waiter = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if self.error is not None and self._ending is None and not self._events:
            raise self.error

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters or [], []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _name(self) -> str:
        return f"job {self.handle or '(no handle)'} of {self.function!r}"

    def _failure_text(self, ending: Failed) -> str:
        reason = ending.reason or ending.data.decode("utf-8", "replace")
        return f"{self._name()} failed" + (f": {reason}" if reason else "")
