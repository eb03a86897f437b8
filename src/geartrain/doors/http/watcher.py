"""Watchers of jobs: one writes their events to a stream, others wait for the end of a submitted job."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from geartrain import jsonbytes
from geartrain.admin import presentation, views
from geartrain.admin.job_watch import JobEnd, JobEndWatcher
from geartrain.doors.http import problems
from geartrain.doors.http.request import json
from geartrain.doors.http.response import Response
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob, Progress

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext
    from geartrain.doors.http.events import EventQueue
    from geartrain.doors.http.request import Request
    from geartrain.runtime.timers import DelayedCall


class EndWatcher(JobEndWatcher):
    """Waits for the end of a job."""

    __slots__ = ("end",)

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(engine)
        self.end: asyncio.Future[JobEnd] = loop.create_future()

    def ended(self, end: JobEnd) -> None:
        if not self.end.done():
            self.end.set_result(end)


class ForegroundWatcher(JobEndWatcher):
    """Answers the request of a client that waits for a foreground job, when the job ends or the time is up."""

    __slots__ = ("_context", "_request", "_seconds", "_timer", "response")

    def __init__(self, context: "HttpContext", request: "Request", seconds: float) -> None:
        super().__init__(context.tick_loop.engine)
        self.response: Response | None = None  # it ended while it was submitted
        self._context = context
        self._request = request
        self._seconds = seconds
        self._timer: DelayedCall | None = None  # None: the request does not wait

    def wait(self) -> None:
        """The job was submitted, and has not ended."""
        self._timer = self._context.tick_loop.timers.call_later(self._seconds, self._stop)
        self._context.on_close.add(self._stop)
        self._request.on_disconnect = self._leave

    def ended(self, end: JobEnd) -> None:
        response = json(ended_job(end))
        if self._timer is None:
            self.response = response
        else:
            self._answer(response)

    def _stop(self) -> None:
        """The time is up, or the door closes."""
        self._context.tick_loop.begin_tick().unwatch_all(self)
        detail = f"the job did not end within {self._seconds:g} seconds; its result is discarded"
        self._answer(problems.answer("not-over", detail))

    def _answer(self, response: Response) -> None:
        self._forget()
        assert self._request.connection is not None
        self._request.connection.respond_later(self._request, response)

    def _leave(self) -> None:
        """The client is gone: a job that nobody runs is dropped."""
        self._forget()
        self._context.tick_loop.begin_tick().unwatch_all(self)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._context.on_close.discard(self._stop)
        self._request.on_disconnect = None


def ended_job(end: JobEnd) -> views.JobView:
    """The job with its whole result: of a foreground job, nothing is kept."""
    view = presentation.job_view(end.job, views.SHOWN_BYTES, end.result, end.at)
    return msgspec.structs.replace(view, result=None if end.result is None else jsonbytes.encode(end.result))


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
