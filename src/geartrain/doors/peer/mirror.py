"""A job of another server with clients of this one: how they hear what happens to it.

At the home of the job a `MirrorWatcher` watches it, and tells each event to the server that has the clients. There a
`Mirror` has a stand-in for the job, outside of the engine's tables, and tells the watchers of the stand-in.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from geartrain.doors.peer.link import PeerLink
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.lifecycle import DONE, FAILED, RUNNING
from geartrain.model import JobState
from geartrain.wire import peer as wire

EVENT: Final = "event"  # as something that is told


class Event(msgspec.Struct, array_like=True):
    """What happened to a job that a mirror watches: the name of a watcher's method, and its arguments."""

    mirror: int
    what: str
    data: bytes = b""
    numbers: list[int] = []
    reason: str = ""
    code: int = 0
    state: int = 0


class Mirror(Watcher):
    """A job of another server, with clients of this one."""

    __slots__ = ("_early", "job", "link", "number")

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.link: PeerLink | None = None  # to the home; None: the job is at this server
        self.job: LiveJob | None = None  # outside of the engine's tables; None: the clients do not know the handle yet
        self._early: list[Event] = []  # that came before that

    def show(self, job: LiveJob) -> None:
        """The clients know the handle: they hear what has happened."""
        self.job = job
        job.state = RUNNING  # so that the engine does not end it when its last watcher is gone
        early, self._early = self._early, []
        for event in early:
            self.hear(event)

    def hear(self, event: Event) -> None:
        """Something has happened to the job at its home."""
        if self.job is None:
            self._early.append(event)
            return
        handler = _HANDLERS.get(event.what)
        if handler is not None:
            handler(self, self.job, event)

    def lose(self) -> None:
        """Nothing more is heard of the job."""
        self._end()

    def _watchers(self) -> list[Watcher]:
        return list((self.job.watchers if self.job is not None else None) or ())

    def _end(self) -> list[Watcher]:
        """The job has ended: it is watched no longer."""
        watchers, job = self._watchers(), self.job
        if job is not None:
            job.watchers = None
            for watcher in watchers:
                watcher.watching.discard(job)
        return watchers

    def progress(self, job: LiveJob, progress: Progress) -> None:
        if self.job is not None:
            self.job.progress = progress
            for watcher in self._watchers():
                watcher.progress(self.job, progress)

    def data(self, job: LiveJob, data: bytes) -> None:
        if self.job is not None:
            for watcher in self._watchers():
                watcher.data(self.job, data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        if self.job is not None:
            for watcher in self._watchers():
                watcher.warning(self.job, data)

    def complete(self, job: LiveJob, result: bytes) -> None:
        if self.job is not None:
            self.job.state = DONE
            for watcher in self._end():
                watcher.complete(self.job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        if self.job is not None:
            self.job.state, self.job.reason, self.job.code = job.state, reason, job.code
            for watcher in self._end():
                watcher.fail(self.job, reason)

    def exception(self, job: LiveJob, data: bytes) -> None:
        if self.job is not None:
            self.job.state, self.job.reason, self.job.code = FAILED, job.reason, job.code
            for watcher in self._end():
                watcher.exception(self.job, data)

    def _hear_progress(self, job: LiveJob, event: Event) -> None:
        self.progress(job, Progress(event.numbers[0], event.numbers[1], event.numbers[2], event.data))

    def _hear_data(self, job: LiveJob, event: Event) -> None:
        self.data(job, event.data)

    def _hear_warning(self, job: LiveJob, event: Event) -> None:
        self.warning(job, event.data)

    def _hear_complete(self, job: LiveJob, event: Event) -> None:
        self.complete(job, event.data)

    def _hear_fail(self, job: LiveJob, event: Event) -> None:
        job.state, job.code = JobState(event.state), event.code
        self.fail(job, event.reason)

    def _hear_exception(self, job: LiveJob, event: Event) -> None:
        job.reason, job.code = event.reason, event.code
        self.exception(job, event.data)


_HANDLERS: Final[dict[str, Callable[[Mirror, LiveJob, Event], None]]] = {
    "progress": Mirror._hear_progress,
    "data": Mirror._hear_data,
    "warning": Mirror._hear_warning,
    "complete": Mirror._hear_complete,
    "fail": Mirror._hear_fail,
    "exception": Mirror._hear_exception,
}


class MirrorWatcher(Watcher):
    """At the home: passes on what happens to a job to the server that has the clients."""

    __slots__ = ("_link", "_number", "_on_end")

    def __init__(self, link: PeerLink, number: int, on_end: Callable[[PeerLink, int], None]) -> None:
        super().__init__()
        self._link = link
        self._number = number
        self._on_end = on_end

    def progress(self, job: LiveJob, progress: Progress) -> None:
        numbers = [progress.numerator, progress.denominator, progress.seconds_left]
        self._tell("progress", progress.verbatim, numbers)

    def data(self, job: LiveJob, data: bytes) -> None:
        self._tell("data", data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._tell("warning", data)

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._tell("complete", result)
        self._on_end(self._link, self._number)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._tell("fail", reason=reason, code=job.code, state=job.state)
        self._on_end(self._link, self._number)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._tell("exception", data, reason=job.reason, code=job.code)
        self._on_end(self._link, self._number)

    def _tell(
        self, what: str, data: bytes = b"", numbers: list[int] | None = None, reason: str = "", code: int = 0,
        state: int = 0,
    ) -> None:  # fmt: skip
        event = Event(self._number, what, data, numbers or [], reason, code, int(state))
        self._link.send(wire.Tell(EVENT, msgspec.msgpack.encode(event)))
