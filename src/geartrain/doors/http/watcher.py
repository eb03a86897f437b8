"""Watchers of jobs: one writes their events to a stream, the other waits for the end of a submitted job."""

import asyncio
from typing import TYPE_CHECKING

from geartrain import jsonbytes
from geartrain.admin import presentation, views
from geartrain.admin.job_watch import JobEnd, JobEndWatcher
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob, Progress

if TYPE_CHECKING:
    from geartrain.doors.http.events import EventQueue


class EndWatcher(JobEndWatcher):
    """Waits for the end of a job."""

    __slots__ = ("end",)

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(engine)
        self.end: asyncio.Future[JobEnd] = loop.create_future()

    def ended(self, end: JobEnd) -> None:
        if not self.end.done():
            self.end.set_result(end)


class StreamWatcher(JobEndWatcher):
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
        self.put_end(presentation.job_view(end.job, views.SHOWN_BYTES, end.result, end.at))

    def put_end(self, view: views.JobView) -> None:
        """Write the last event."""
        self.queue.put("done" if view.state == "done" else "failed", view, last=True)
