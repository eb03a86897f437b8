"""A MemoDB client's request, as the engine sees it.

A client can be told nothing but a result. When there will be none, it hears nothing, and its own resend is a new
request. Where that resend is welcome (no worker was found, or the worker was too slow) the pipe is closed too,
unless something else depends on it: NNG then sends again at once instead of after a minute.
"""

import logging
from typing import TYPE_CHECKING

from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RUNNING
from geartrain.wire import memodb as wire

if TYPE_CHECKING:
    from geartrain.doors.memodb.connection import MemodbConnection
    from geartrain.runtime.timers import DelayedCall


class MemodbWatcher(Watcher):
    """One per request: the request's backtrace is all that an answer needs."""

    __slots__ = ("_timer", "backtrace", "connection", "ends_at", "job")

    def __init__(self, connection: "MemodbConnection", backtrace: bytes) -> None:
        super().__init__()
        self.connection = connection
        self.backtrace = backtrace
        self.job: LiveJob | None = None  # while it waits for it
        self.ends_at = 0.0  # when the client's time is over, once a lost worker has made that a question
        self._timer: DelayedCall | None = None

    def wait(self, job: LiveJob) -> None:
        """Its job was accepted: wait for a worker, but not for ever.

        A worker of this door that has it already will say so when it is `lost`.
        """
        self.job = job
        if job.owner is None or job.owner.door != job.door:
            self._check_in(self.connection.memodb.options.queue_timeout)

    def complete(self, job: LiveJob, result: bytes) -> None:
        """RESULT."""
        self.over()
        self.connection.reply(self.backtrace, wire.RESULT_TO_CLIENT, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        """Silence: the protocol has no word for it."""
        self.over()
        self.connection.log(logging.INFO, "job failed, not reported to client", reason)

    def exception(self, job: LiveJob, data: bytes) -> None:
        """The same."""
        self.fail(job, job.reason)

    def expired(self, job: LiveJob) -> None:
        """The client's time is over: no other worker need try."""
        self.drop("its worker did not answer in time")

    def lost(self, job: LiveJob) -> None:
        """Its worker is about to be lost: another one has what is left of the client's time."""
        left = max(job.deadline - self.connection.engine.now, wire.SHORTEST)
        self.ends_at = job.deadline
        job.timeout = left
        self._check_in(left)

    def _check(self) -> None:
        """Drop the request if no worker has taken it, or finished it in time."""
        self._timer = None
        job = self.job
        if job is None:
            return
        now = self.connection.engine.now
        if not job.attempts:
            self.drop("no worker took it in time")
            return
        ends_at = job.deadline if job.state is RUNNING else self.ends_at or job.started_at + job.timeout
        if now < ends_at:
            self._check_in(ends_at - now)
        else:
            self.drop("no other worker finished it in time")

    def drop(self, why: str) -> None:
        """Give up: silence, and a closed pipe if that hurts nobody else."""
        self.over()
        self.connection.engine.unwatch_all(self)
        self.connection.log(logging.INFO, "request dropped", why)
        self.connection.close_if_unused()

    def over(self) -> None:
        """From now on the same request is a new one."""
        self.job = None
        self.connection.settled(self.backtrace)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.connection.tick_loop.timers.call_later(seconds, self._check)
