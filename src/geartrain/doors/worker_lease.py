"""Leases of workers that send heartbeats: one that is silent while it has jobs loses them.

A worker that is stopped, or whose machine is cut off, keeps its connection for minutes or for ever, and its jobs too.
A worker of our library announces, in the way of its protocol, that it will send heartbeats while it has jobs. Others
announce nothing and have no lease: a worker that computes for an hour without a word is no sign of trouble.

A heartbeat notes the time, and nothing else. One timer per worker looks at that time, as seldom as the lease allows.
"""

from typing import TYPE_CHECKING, Final

from geartrain.engine.worker import Worker

if TYPE_CHECKING:
    from geartrain.doors.connection import Connection
    from geartrain.runtime.timers import DelayedCall

# Between the moment when a lease is over and the end of the worker. A server that was stopped itself, or that was busy,
# reads the heartbeats that have arrived meanwhile.
_GRACE: Final = 1.0


class WorkerLease:
    """The lease of a connection's worker, from its announcement to the end of the connection."""

    __slots__ = ("_connection", "_renewed_at", "_suspected_at", "_timer", "_worker", "seconds")

    def __init__(self, connection: "Connection", worker: Worker, seconds: float) -> None:
        self.seconds = seconds
        self._connection = connection
        self._worker = worker
        self._renewed_at: float = connection.tick_loop.loop.time()
        self._suspected_at: float = -1.0  # `_renewed_at` when the lease was found to be over
        self._timer: DelayedCall | None = None
        self._check_after(seconds)

    def renew(self) -> None:
        """A heartbeat has arrived."""
        self._renewed_at = self._connection.tick_loop.loop.time()

    def end(self) -> None:
        """The connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_after(self, seconds: float) -> None:
        self._timer = self._connection.tick_loop.timers.call_later(seconds, self._check)

    def _check(self) -> None:
        left = self.seconds - self._silence()
        if left > 0:
            self._check_after(left)
        elif self._suspected_at != self._renewed_at:
            self._suspected_at = self._renewed_at
            self._check_after(min(_GRACE, self.seconds))
        else:
            self._timer = None
            why = f"worker sent no heartbeat for {self.seconds:g} s"
            self._worker.leaving_reason = why
            self._connection.drop(why)

    def _silence(self) -> float:
        """For how long the worker has had a job and sent no heartbeat."""
        jobs = self._worker.running.jobs()
        if not jobs:
            return 0.0
        tick_loop = self._connection.tick_loop
        longest = 0.0
        for job in jobs:
            longest = max(longest, tick_loop.engine.now - job.started_at)
        return min(longest, tick_loop.loop.time() - self._renewed_at)
