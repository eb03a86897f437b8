"""A worker that comes by HTTP: its claims wait here until there are jobs for them.

A worker has no connection of its own, so it is known by an id, and by being heard of: every request that names it
counts, and so does a claim that waits. When it has been silent for longer than its lease it is gone, and its jobs go
back to their queues.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.runtime.timers import DelayedCall

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext

Claim = asyncio.Future[LiveJob]


class HttpWorker(Worker):
    """Asleep as long as claims wait and there are no jobs."""

    __slots__ = ("_context", "_gone", "_heard_at", "_left", "_timer", "claims", "key", "lease")

    def __init__(self, context: "HttpContext", name: bytes, lease: float, gone: Callable[["HttpWorker"], None]) -> None:
        super().__init__("http", name)
        self.key = secrets.token_urlsafe(12)  # what it calls itself in its requests
        self.lease = lease
        self.claims: dict[Claim, None] = {}  # that wait for a job, the oldest first
        self._context = context
        self._gone = gone
        self._heard_at = 0.0
        self._left = False
        self._timer: DelayedCall | None = None
        self.heard()

    def wake(self) -> None:
        """Give its claims what there is, and wait with the rest."""
        engine = self._context.engine
        while self.claims:
            job = engine.claim(self)
            if job is None:
                engine.sleep(self)
                return
            claim = next(iter(self.claims))
            del self.claims[claim]
            claim.set_result(job)

    def ask(self) -> Claim:
        """One more job is wanted; done when it is there."""
        claim: Claim = self._context.tick_loop.loop.create_future()
        self.claims[claim] = None
        if not self.idle:
            self.wake()
        return claim

    def withdraw(self, claim: Claim) -> None:
        """That job is not wanted after all; one that was given meanwhile goes back as if it never had been."""
        self.claims.pop(claim, None)
        engine = self._context.engine
        if not self.claims:
            engine.stop_sleeping(self)
        if claim.done() and not claim.cancelled():
            job = claim.result()
            if job.handle in self.running:
                engine.hand_back(self, job)

    def heard(self) -> None:
        """It has just been heard of."""
        if self._left:
            return
        tick_loop = self._context.tick_loop
        self._heard_at = tick_loop.loop.time()
        if self._timer is None:
            self._timer = tick_loop.timers.call_later(self.lease, self._check_lease)

    def leave(self) -> None:
        """It is gone, or says so: what it has goes back."""
        self._left = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for claim in self.claims:
            claim.cancel()
        self.claims.clear()
        self._context.now().remove_worker(self)

    def _check_lease(self) -> None:
        """The timer runs from some moment it was heard at; if it was heard later, there is time left."""
        self._timer = None
        tick_loop = self._context.tick_loop
        now = tick_loop.loop.time()
        if self.claims:
            self._heard_at = now
        left = self._heard_at + self.lease - now
        if left <= 0:
            self._gone(self)
        else:
            self._timer = tick_loop.timers.call_later(left, self._check_lease)
