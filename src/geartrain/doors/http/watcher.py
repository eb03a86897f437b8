"""Watchers of jobs: one writes their events to a stream, one waits for the end of a submitted job."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from geartrain import jsonbytes
from geartrain.admin import views
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress

if TYPE_CHECKING:
    from geartrain.doors.http.events import EventQueue


class JobEnd(NamedTuple):
    """How a job ended."""

    job: LiveJob
    result: bytes | None
    at: float


class HttpWatcher(Watcher):
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


class EndWatcher(HttpWatcher):
    """Waits for the end of a job."""

    __slots__ = ("end",)

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(engine)
        self.end: asyncio.Future[JobEnd] = loop.create_future()

    def ended(self, end: JobEnd) -> None:
        if not self.end.done():
            self.end.set_result(end)


class StreamWatcher(HttpWatcher):
    """Writes the events of a job to a stream."""

    __slots__ = ("queue",)

    def __init__(self, engine: Engine, queue: "EventQueue") -> None:
        super().__init__(engine)
        self.queue = queue

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self.queue.put("progress", {"numerator": progress.numerator, "denominator": progress.denominator})

    def data(self, job: LiveJob, data: bytes) -> None:
        self.queue.put("data", {"data": jsonbytes.encode(data)})

    def warning(self, job: LiveJob, data: bytes) -> None:
        self.queue.put("warning", {"data": jsonbytes.encode(data)})

    def ended(self, end: JobEnd) -> None:
        self.put_end(views.job_view(end.job, views.SHOWN_BYTES, end.result, end.at))

    def put_end(self, view: views.JobView) -> None:
        """Write the last event."""
        self.queue.put("done" if view.state == "done" else "failed", view, last=True)
