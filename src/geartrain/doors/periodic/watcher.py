"""The answers that a Periodic client gets about a job: one, or, if it asked for data, several."""

from typing import TYPE_CHECKING, Final

from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import CANCELLED
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection
    from geartrain.runtime.timers import DelayedCall

_EXPIRED: Final = b"expired"


class RunWatcher(Watcher):
    """One per RUN_JOB: the answer is the result, or a word for a failure."""

    __slots__ = ("_timer", "connection", "message_id")

    def __init__(self, connection: "PeriodicConnection", message_id: bytes) -> None:
        super().__init__()
        self.connection = connection
        self.message_id = message_id
        self._timer: DelayedCall | None = None

    def expire_in(self, seconds: float) -> None:
        """Answer after this time if there is no result."""
        self._timer = self.connection.tick_loop.timers.call_later(seconds, self._expire)

    def complete(self, job: LiveJob, result: bytes) -> None:
        """Answer with the result."""
        self.finish(result)

    def exception(self, job: LiveJob, data: bytes) -> None:
        """The same as a failure: the data could be mistaken for a result."""
        self.fail(job, "")

    def fail(self, job: LiveJob, reason: str) -> None:
        """A word for today's clients. Clients of the document know only results, and get an empty one."""
        word = b"removed" if job.state is CANCELLED else b"failed"
        self.finish(word if self.connection.dialect.data else b"")

    def fails_on_retry(self) -> bool:
        """Whether `failed` is the answer when the job runs again later. Clients of the document wait for a result."""
        return self.connection.dialect is wire.TODAY

    def finish(self, answer: bytes) -> None:
        """Answer, and stop waiting."""
        self.cancel_timer()
        self.connection.waiters.discard(self)
        self.connection.answer_data(self.message_id, answer)

    def cancel_timer(self) -> None:
        """Do not expire."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self.connection.engine.unwatch_all(self)
        self.finish(_EXPIRED if self.connection.dialect.data else b"")


class DataWatcher(RunWatcher):
    """One per RECV_DATA: each part of the result, then EOF. The result itself goes to clients of RUN_JOB."""

    __slots__ = ()

    def data(self, job: LiveJob, data: bytes) -> None:
        """Answer with a part of the result."""
        self.connection.answer_data(self.message_id, data)

    def fails_on_retry(self) -> bool:
        """No: the next attempt sends parts too."""
        return False

    def complete(self, job: LiveJob, result: bytes) -> None:
        """Answer with EOF."""
        self.finish(b"EOF")

    def fail(self, job: LiveJob, reason: str) -> None:
        """Answer with EOF."""
        self.finish(b"EOF")
