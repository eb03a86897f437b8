"""A MemoDB worker, as the engine sees it.

A worker sends requests, and is answered with a job, or after a while with a heartbeat. So it is always in one of three
states: its request waits for an answer; or it has a job and owes a RESULT; or it has a heartbeat and owes a HEARTBEAT.
After any other message the two sides disagree about its state, and it is disconnected to register again.
"""

import logging
from typing import TYPE_CHECKING, Final

from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import memodb as wire

if TYPE_CHECKING:
    from geartrain.doors.memodb.connection import MemodbConnection
    from geartrain.runtime.timers import DelayedCall

NOTHING: Final = 0  # what a worker owes while its request waits for an answer
# The timeout in milliseconds of a job that has none: the largest number that every worker can store.
_NO_LIMIT: Final = 2**31 - 1


class MemodbWorker(Worker):
    """Identified by its id, since one pipe may have many workers."""

    __slots__ = (
        "_last_function", "_last_header", "_last_timeout", "_timer", "answered", "backtrace", "connection", "id", "job",
        "owes", "ready",
    )  # fmt: skip

    def __init__(self, connection: "MemodbConnection", ready: bytes, id: bytes) -> None:
        super().__init__(connection.door.name, peer=connection.peer)
        self.connection = connection
        self.ready = ready  # the backtrace of its READY
        self.id = id
        self.owes = NOTHING  # a message type
        self.backtrace = b""  # of its request that waits for an answer
        self.answered = b""  # of its last answered request: a copy may still arrive
        self.job: LiveJob | None = None  # its last job
        self._timer: DelayedCall | None = None  # while it owes a HEARTBEAT
        self._last_header = b""  # of JOB, with this function and timeout
        self._last_function = b""
        self._last_timeout = -1.0
        connection.memodb.workers[id] = self
        connection.workers.add(self)
        connection.ready_requests.add(ready)

    def wait(self, backtrace: bytes) -> None:
        """Answer this request with a job as soon as there is one."""
        connection = self.connection
        if self._timer is not None:  # for the heartbeat that it has answered
            self._timer.cancel()
            self._timer = None
        self.backtrace = backtrace
        self.owes = NOTHING
        connection.engine.sleep(self)  # which wakes it at once if there is a job
        if self.owes == NOTHING:
            connection.outstanding[backtrace] = self
            connection.memodb.idle.add(self)

    def wake(self) -> None:
        """Assign a job, if there still is one."""
        job = self.connection.engine.claim(self)
        if job is not None:
            self.assign(job)
        else:
            self.connection.engine.sleep(self)

    def assign(self, job: LiveJob) -> None:
        """JOB."""
        self.job = job
        self.owes = wire.RESULT
        self._cancel_timer()
        self._answer(self._header(job), job.payload)

    def _header(self, job: LiveJob) -> bytes:
        """The header of JOB: nearly always that of the worker's last job."""
        timeout = job.timeout
        if timeout == self._last_timeout and job.function == self._last_function:
            return self._last_header
        header = wire.job(self.id, job.function, _milliseconds(job))
        if timeout != wire.SHORTEST:  # with which it depends on the client
            self._last_timeout = timeout
            self._last_function = job.function
            self._last_header = header
        return header

    def finish(self, result: bytes) -> None:
        """Complete its job; ignored if the job was taken away."""
        job = self.job
        self.job = None
        if job is not None and not self.is_forgiven(job.handle) and self.running.get(job.handle) is job:
            self.connection.engine.complete(self, job, result)

    def send_heartbeat(self) -> None:
        """It has waited for a job."""
        self.connection.engine.stop_sleeping(self)
        self.owes = wire.HEARTBEAT
        self._answer(wire.heartbeat(self.id))
        self._timer = self.connection.tick_loop.timers.call_later(
            self.connection.memodb.options.worker_timeout, self._give_up
        )

    def _give_up(self) -> None:
        self._timer = None
        self.leave("no answer to a heartbeat")

    @property
    def is_timed(self) -> bool:
        """Whether it will get a heartbeat, or be removed, if nothing happens."""
        return self._timer is not None or self in self.connection.memodb.idle

    def revoked(self, job: LiveJob) -> None:
        """Remove a worker whose job timed out. A cancelled job cannot be taken back, and goes on."""
        if job.handle not in (self.forgiven or ()):
            self.leave("no answer to a job in time")

    def leave(self, why: str) -> None:
        """Remove it: requeue its job, and answer its request with DISCONNECT."""
        memodb = self.connection.memodb
        if memodb.workers.pop(self.id, None) is None:
            return
        self.connection.workers.discard(self)
        self.connection.ready_requests.discard(self.ready)
        self._cancel_timer()
        if self.backtrace:
            self._answer(wire.disconnect(self.id))
        job = self.job
        if job is not None and job.owner is self and job.deadline:
            for watcher in job.watchers or ():
                if isinstance(watcher, MemodbWatcher):
                    watcher.worker_lost(job)
        self.connection.engine.remove_worker(self)
        self.connection.log(logging.DEBUG, "worker removed", why)

    def _cancel_timer(self) -> None:
        self.connection.memodb.idle.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answer(self, header: bytes, payload: bytes = b"") -> None:
        backtrace = self.answered = self.backtrace
        self.backtrace = b""
        self.connection.request_ended(backtrace)
        self.connection.reply(backtrace, header, payload)


def _milliseconds(job: LiveJob) -> int:
    """The timeout that the worker gets: 0 and negative ones unchanged, although the shortest one applies here."""
    if not job.timeout:
        return _NO_LIMIT
    if job.timeout == wire.SHORTEST:
        for watcher in job.watchers or ():
            if isinstance(watcher, MemodbWatcher) and watcher.timeout <= 0:
                return watcher.timeout
    return max(round(job.timeout * 1000), 1)
