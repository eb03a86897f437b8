"""Waiting for changes to be on disk.

The committer writes the changes of one or more ticks as one batch. Each batch has a number, its ticket. A connection
that must not answer before its changes are durable takes a ticket (`Durability.ticket`) and is called when the commit
of that batch has ended; coroutines await `Durability.durable`. Without a durable store there is no committer and no
wait.
"""

import asyncio
import logging
from collections.abc import Callable

from mypy_extensions import mypyc_attr

from geartrain.errors import NotDurableError

_log = logging.getLogger("geartrain.store")


@mypyc_attr(allow_interpreted_subclasses=True)
class CommitWaiter:
    """Holds a ticket."""

    __slots__ = ()

    def commit_ended(self, ticket: int, failed: bool) -> None:
        """The changes of every batch up to `ticket` are durable, or, if it failed, were undone."""
        raise NotImplementedError


class _Callback(CommitWaiter):
    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[bool], object]) -> None:
        self._callback = callback

    def commit_ended(self, ticket: int, failed: bool) -> None:
        self._callback(failed)


class Durability:
    """Hands out tickets. The committer says when changes gather, and when a commit begins and ends."""

    def __init__(self) -> None:
        self._ticket = 1  # of the batch that gathers
        self._gathering = False  # whether there is a change in it
        self._waiters: set[CommitWaiter] = set()  # for that batch
        self._writing: set[CommitWaiter] | None = None  # for the batch that is being written
        # Called after each commit with its ticket, and whether it failed; unlike a waiter, they hurry no commit.
        self.followers: list[Callable[[int, bool], None]] = []

    def ticket(self, waiter: CommitWaiter) -> int:
        """The ticket of the last change so far; 0 if every change is durable, and `waiter` will not be called."""
        if self._gathering:
            self._waiters.add(waiter)
            return self._ticket
        if self._writing is not None:
            self._writing.add(waiter)
            return self._ticket - 1
        return 0

    @property
    def last_ticket(self) -> int:
        """The ticket of the last change so far; 0 if every change is durable. For `followers`."""
        if self._gathering:
            return self._ticket
        return self._ticket - 1 if self._writing is not None else 0

    def call_when_durable(self, callback: Callable[[bool], object]) -> None:
        """Call back when every change so far is durable, with whether the commit failed; at once if all are."""
        if not self.ticket(_Callback(callback)):
            callback(False)

    async def durable(self) -> None:
        """Wait until every change so far is durable; a NotDurableError if the commit fails."""
        ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def end(failed: bool) -> None:
            if not ended.done():  # the coroutine may have been cancelled
                ended.set_result(failed)

        self.call_when_durable(end)
        if await ended:
            raise NotDurableError

    @property
    def waiting(self) -> int:
        """How many wait for the batch that gathers."""
        return len(self._waiters)

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits for the batch that gathers."""
        return bool(self._waiters)

    @property
    def expected(self) -> int:
        """How many would wait for that batch if those whom the commit under way will answer came back."""
        return len(self._waiters | self._writing) if self._writing else len(self._waiters)

    def changed(self) -> None:
        """There is a change that no commit has begun to write."""
        self._gathering = True

    def begin_commit(self) -> None:
        """The batch that gathered is being written; the next change belongs to another one."""
        self._writing = self._waiters
        self._waiters = set()
        self._gathering = False
        self._ticket += 1

    def end_commit(self, failed: bool) -> None:
        """The batch is durable; or it is not, and then neither are the changes that came after it."""
        waiters, ticket = self._writing or set(), self._ticket - 1
        self._writing = None
        if failed:
            waiters |= self._waiters
            self._waiters = set()
            ticket = self._ticket
            self._ticket += 1
        for waiter in waiters:
            try:
                waiter.commit_ended(ticket, failed)
            except Exception:  # the others wait as well
                _log.exception("end of a commit could not be handled")
        for follower in self.followers:
            follower(ticket, failed)
