"""A MemoDB client's request, as the engine sees it.

The only answer to a client is a result. Without one it gets no answer, and repeats its request, which is then a new
one. Where that is useful (no worker took the job, or the worker was too slow) the pipe is closed too, unless something
else uses it: NNG then repeats the request at once instead of after a minute.
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
    """One per request. An answer needs only the backtrace of the request."""

    __slots__ = ("_timer", "backtrace", "connection", "ends_at", "job", "timeout")

    def __init__(self, connection: "MemodbConnection", backtrace: bytes, timeout: int) -> None:
        super().__init__()
        self.connection = connection
        self.backtrace = backtrace
        self.timeout = timeout  # in milliseconds, as the client sent it
        self.job: LiveJob | None = None  # None after the end
        self.ends_at = 0.0  # when the client's timeout ends, once its first worker is lost
        self._timer: DelayedCall | None = None

    def wait(self, job: LiveJob) -> None:
        """Wait for the job, and give up if no worker takes it in time.

        A worker of this door that runs it already calls `worker_lost` when it is lost.
        """
        self.job = job
        if job.owner is None or job.owner.door != job.door:
            self.connection.memodb.unchecked.add(self)

    def complete(self, job: LiveJob, result: bytes) -> None:
        """RESULT."""
        self.end()
        self.connection.reply(self.backtrace, wire.RESULT_TO_CLIENT, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        """No answer: the protocol has none for a failure."""
        self.end()
        self.connection.log(logging.INFO, "job failed, not reported to client", reason)

    def exception(self, job: LiveJob, data: bytes) -> None:
        """The same as a failure."""
        self.fail(job, job.reason)

    def expired(self, job: LiveJob) -> None:
        """The client's timeout has ended: no other worker needs the job."""
        self.drop("its worker did not answer in time")

    def worker_lost(self, job: LiveJob) -> None:
        """The worker is about to be removed: the next one has the rest of the client's timeout."""
        left = max(job.deadline - self.connection.engine.now, wire.SHORTEST)
        self.ends_at = job.deadline
        job.timeout = left
        self._check_in(left)

    def check(self) -> None:
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
        """Give up: no answer, and close the pipe if nothing else uses it."""
        self.end()
        self.connection.engine.unwatch_all(self)
        self.connection.log(logging.INFO, "request dropped", why)
        self.connection.close_if_unused()

    def end(self) -> None:
        """Stop waiting. From now on the same request is a new one."""
        self.job = None
        self.connection.request_ended(self.backtrace)
        self._check_no_more()

    @property
    def is_checked(self) -> bool:
        """Whether it will be dropped in time if nothing happens."""
        return self._timer is not None or self in self.connection.memodb.unchecked

    def _check_in(self, seconds: float) -> None:
        self._check_no_more()
        self._timer = self.connection.tick_loop.timers.call_later(seconds, self.check)

    def _check_no_more(self) -> None:
        self.connection.memodb.unchecked.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
