"""Following one job to its end: the base of such watchers, and the control jobs of `watch`.

A control job of `watch` sends the reports of another job as parts of its own result, one JSON line each, and completes
when that job has ended. Where the client's protocol has no parts, only the end reaches it. So the end of a job is
pushed over every protocol, whoever submitted the job.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from geartrain import jsonbytes
from geartrain.admin import presentation, views
from geartrain.admin.views import JobView
from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Timer, Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.jsonbytes import Base64, JsonBytes

_SECOND: Final = 1.0
_LONGEST_TEXT: Final = 1024  # bytes of a result that is written as text if it is text
_CHECKS_PER_SECOND: Final = 1000  # of whether a watch's client has left

_encoder: Final = msgspec.json.Encoder()
STOPPING: Final = b'{"error":{"kind":"unavailable","text":"the server stops"}}'


class JobEnd(NamedTuple):
    """How a job ended."""

    job: LiveJob
    result: bytes | None
    at: float


class JobWatchAnswer(msgspec.Struct, frozen=True):
    """The answer of `watch`: a job that has ended, and its whole result or what its worker sent with the failure."""

    job: JobView
    result: JsonBytes | None = None


def encoded_result(result: bytes) -> JsonBytes:
    """A result in JSON. A long one is written as base64: text with many control characters would grow to six times."""
    return jsonbytes.encode(result) if len(result) <= _LONGEST_TEXT else Base64(result)


class JobEndWatcher(Watcher):
    """Reduces the three ways in which a job can end to one."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def ended(self, end: JobEnd) -> None:
        """The job has ended."""
        raise NotImplementedError

    def complete(self, job: LiveJob, result: bytes) -> None:
        self.ended(JobEnd(job, result, self._engine.now))

    def fail(self, job: LiveJob, reason: str) -> None:
        self.ended(JobEnd(job, None, self._engine.now))

    def exception(self, job: LiveJob, data: bytes) -> None:
        self.ended(JobEnd(job, data, self._engine.now))


class JobReports(JobEndWatcher):
    """Sends the reports of one job to the clients of a control job."""

    __slots__ = ("control_job",)

    def __init__(self, engine: Engine, control_job: LiveJob) -> None:
        super().__init__(engine)
        self.control_job = control_job

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._send({"what": "progress", "numerator": progress.numerator, "denominator": progress.denominator})

    def data(self, job: LiveJob, data: bytes) -> None:
        self._send({"what": "data", "data": jsonbytes.encode(data)})

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._send({"what": "warning", "data": jsonbytes.encode(data)})

    def _send(self, report: dict[str, Any]) -> None:
        self._engine.data(self.control_job, _encoder.encode(report) + b"\n")


class JobWatch(JobReports):
    """Sends what happens to one job to the clients of a control job."""

    __slots__ = ("_end",)

    def __init__(self, engine: Engine, control_job: LiveJob, end: Callable[["JobWatch", bytes], None]) -> None:
        super().__init__(engine, control_job)
        self._end = end

    def ended(self, end: JobEnd) -> None:
        view = presentation.job_view(end.job, views.LISTED_BYTES, end.result, end.at)
        result = encoded_result(end.result) if end.result is not None else None
        self._end(self, _encoder.encode({"answer": JobWatchAnswer(view, result)}))


class JobWatches(Timer):
    """All watches. A timer removes those whose clients have left, while there are any."""

    def __init__(self, engine: Engine, finish: Callable[[LiveJob, bytes], None]) -> None:
        super().__init__()
        self._engine = engine
        self._finish = finish
        self._watches: dict[JobWatch, None] = {}
        self._unchecked: deque[JobWatch] = deque()  # of this round
        self._is_ended = False
        engine.timers.append(self)

    def add(self, control_job: LiveJob, job: LiveJob) -> None:
        """Let a control job follow a job that has not ended."""
        if self._is_ended:  # a stop would wait for the watch, and the watch for a job that runs after the stop
            self._finish(control_job, STOPPING)
            return
        watch = JobWatch(self._engine, control_job, self._ended)
        if not self._watches:
            self.at = self._engine.now + _SECOND
        self._watches[watch] = None
        if job.progress is not None:
            watch.progress(job, job.progress)
        self._engine.watch(job, watch)

    def end(self) -> None:
        """Complete all watches, also those that are added later: the server stops."""
        self._is_ended = True
        for watch in list(self._watches):
            self._engine.unwatch_all(watch)
            self._ended(watch, STOPPING)

    def fire(self, now: float) -> None:
        """Drop watches whose clients have left: some at a time, because there may be very many."""
        if not self._watches:
            self.at = NEVER
            return
        if now < self.at <= now + 2 * _SECOND:
            return
        self.at = now + _SECOND
        if not self._unchecked:
            self._unchecked.extend(self._watches)
        for _ in range(min(_CHECKS_PER_SECOND, len(self._unchecked))):
            watch = self._unchecked.popleft()
            if watch in self._watches and not watch.control_job.watchers:
                self._engine.unwatch_all(watch)
                self._ended(watch, b"")

    def _ended(self, watch: JobWatch, answer: bytes) -> None:
        if self._watches.pop(watch, watch) is None:
            self._finish(watch.control_job, answer)
