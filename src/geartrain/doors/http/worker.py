"""Workers that use HTTP: they claim jobs by long poll.

A worker has no connection of its own. It is identified by a key, and has a lease: every request with its key renews
the lease, and so does a claim that waits. When the lease expires, the worker is removed and its jobs return to their
queues.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from typing import Final

from geartrain.audit import Peer
from geartrain.doors.http.problems import Refusal
from geartrain.engine import names
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.errors import RequestError
from geartrain.model import Expiry
from geartrain.rights import Identity
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall

WORKERS_MOST: Final = 100_000
_MOST_REVOCATIONS: Final = 1000  # kept for a worker that does not ask for them

Claim = asyncio.Future[LiveJob]


class HttpWorker(Worker):
    """Sleeps while it has claims and there are no jobs for them."""

    __slots__ = (
        "_on_expiry",
        "_removed",
        "_renewed_at",
        "_tick_loop",
        "_timer",
        "_waiter",
        "claims",
        "key",
        "lease",
        "revocations",
        "user",
    )

    def __init__(
        self, tick_loop: TickLoop, name: bytes, lease: float, on_expiry: Callable[["HttpWorker"], None]
    ) -> None:
        super().__init__("http", name)
        self.key = secrets.token_urlsafe(12)
        self.lease = lease
        self.user: Identity | None = None  # who registered it
        self.claims: dict[Claim, None] = {}  # that wait for a job, oldest first
        self._tick_loop = tick_loop
        self._on_expiry = on_expiry
        self._renewed_at = 0.0
        self._removed = False
        self._timer: DelayedCall | None = None
        self.revocations: deque[bytes] = deque(maxlen=_MOST_REVOCATIONS)  # handles that it has not been told
        self._waiter: asyncio.Future[None] | None = None  # of a renewal that waits for one
        self.renew()

    def wake(self) -> None:
        """Answer claims with jobs, and sleep if claims are left."""
        engine = self._tick_loop.engine
        while self.claims:
            job = engine.claim(self)
            if job is None:
                engine.sleep(self)
                return
            claim = next(iter(self.claims))
            del self.claims[claim]
            claim.set_result(job)

    def claim(self) -> Claim:
        """Request a job. The future is done when there is one."""
        claim: Claim = self._tick_loop.loop.create_future()
        self.claims[claim] = None
        if not self.idle:
            self.wake()
        return claim

    def withdraw(self, claim: Claim) -> None:
        """Cancel a claim. A job that it got meanwhile returns to its queue, and the attempt does not count."""
        self.claims.pop(claim, None)
        engine = self._tick_loop.engine
        if not self.claims:
            engine.stop_sleeping(self)
        if claim.done() and not claim.cancelled():
            job = claim.result()
            if job.handle in self.running:
                engine.hand_back(self, job)

    def renew(self) -> None:
        """Renew the lease."""
        if self._removed:
            return
        self._renewed_at = self._tick_loop.loop.time()
        if self._timer is None:
            self._timer = self._tick_loop.timers.call_later(self.lease, self._check_lease)

    def revoked(self, job: LiveJob) -> None:
        """The job timed out or was cancelled: its next renewal says so, or the one that waits."""
        self.revocations.append(job.handle)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def revocation(self) -> "asyncio.Future[None]":
        """Done when a job has been revoked. A second renewal that waits ends the first."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.cancel()
        self._waiter = self._tick_loop.loop.create_future()
        if self.revocations or self._removed:
            self._waiter.set_result(None)
        return self._waiter

    def take_revocations(self) -> list[bytes]:
        """The handles of revoked jobs, each once."""
        handles = list(self.revocations)
        self.revocations.clear()
        return handles

    def remove(self) -> None:
        """Remove the worker from the engine; its jobs return to their queues."""
        self._removed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for claim in self.claims:
            claim.cancel()
        self.claims.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._tick_loop.begin_tick().remove_worker(self)

    def _check_lease(self) -> None:
        """The timer is not moved when the lease is renewed: it is set again for the time that is left."""
        self._timer = None
        now = self._tick_loop.loop.time()
        if self.claims:
            self._renewed_at = now
        left = self._renewed_at + self.lease - now
        if left <= 0:
            self._on_expiry(self)
        else:
            self._timer = self._tick_loop.timers.call_later(left, self._check_lease)


class WorkerRegistry:
    """The workers of a door, by key."""

    def __init__(self, tick_loop: TickLoop, default_lease: float) -> None:
        self._tick_loop = tick_loop
        self._default_lease = default_lease
        self._workers: dict[str, HttpWorker] = {}

    def register(
        self,
        functions: list[bytes],
        *,
        name: bytes,
        lease: float | None,
        timeout: float,
        peer: str,
        identity: Identity | None = None,
        client: Peer | None = None,
    ) -> HttpWorker:
        """Add a worker for these functions."""
        if len(self._workers) >= WORKERS_MOST:
            raise Refusal("unavailable", f"{WORKERS_MOST} workers are registered, which is the limit")
        engine = self._tick_loop.begin_tick()
        names.check_worker(name)
        engine.actor, engine.peer = identity, client
        worker = HttpWorker(self._tick_loop, name, lease or self._default_lease, self.remove)
        worker.peer = peer
        worker.user = identity
        try:
            for function in functions:
                engine.register(worker, function, timeout, Expiry.REQUEUE)
        except RequestError:
            worker.remove()
            raise
        self._workers[worker.key] = worker
        return worker

    def find(self, key: bytes) -> HttpWorker:
        """The worker with this key, after renewing its lease."""
        worker = self._workers.get(key.decode("utf-8", "replace"))
        if worker is None:
            raise Refusal("not-found", "no such worker: it was unregistered or its lease expired; register again")
        worker.renew()
        return worker

    def remove(self, worker: HttpWorker) -> None:
        """Remove a worker, if it has not been removed already."""
        if self._workers.pop(worker.key, None) is not None:
            worker.remove()

    def end(self, identities: frozenset[Identity]) -> None:
        """Remove the workers of identities that are no longer valid."""
        for worker in list(self._workers.values()):
            if worker.user in identities:
                self.remove(worker)

    def close(self) -> None:
        """Remove all workers."""
        for worker in list(self._workers.values()):
            self.remove(worker)
