"""What a Periodic client hears of a job that it waits for: one answer, or, if it asked for data, several."""

from typing import TYPE_CHECKING, Final

from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import CANCELLED

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection
    from geartrain.runtime.timers import DelayedCall

_EXPIRED: Final = b"expired"


class RunWatcher(Watcher):
    """One per RUN_JOB: the result is the answer. A failure is a word, because there is nothing else to say it."""

    __slots__ = ("_timer", "connection", "message_id")

    def __init__(self, connection: "PeriodicConnection", message_id: bytes) -> None:
        super().__init__()
        self.connection = connection
        self.message_id = message_id
        self._timer: DelayedCall | None = None

    def expire_in(self, seconds: float) -> None:
        """Wait no longer than that."""
        self._timer = self.connection.tick_loop.timers.call_later(seconds, self._expire)

    def complete(self, job: LiveJob, result: bytes) -> None:
        """The result itself."""
        self.finish(result)

    def exception(self, job: LiveJob, data: bytes) -> None:
        """The worker's words are not for here: a result could be the same."""
        self.fail(job, "")

    def fail(self, job: LiveJob, reason: str) -> None:
        """Today's clients get a word; those of the document know nothing but results, and get an empty one."""
        word = b"removed" if job.state is CANCELLED else b"failed"
        self.finish(word if self.connection.dialect.data else b"")

    def finish(self, answer: bytes) -> None:
        """Answer, and wait no more."""
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
    """One per RECV_DATA: every part as it comes, then EOF. The result is for those who asked to run the job."""

    __slots__ = ()

    def data(self, job: LiveJob, data: bytes) -> None:
        """A part."""
        self.connection.answer_data(self.message_id, data)

    def complete(self, job: LiveJob, result: bytes) -> None:
        """There will be no more."""
        self.finish(b"EOF")

    def fail(self, job: LiveJob, reason: str) -> None:
        """There will be no more."""
        self.finish(b"EOF")
