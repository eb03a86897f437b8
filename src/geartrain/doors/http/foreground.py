"""The answer to a request that waits for a foreground job: when the job ends, or when the time is up."""

from typing import TYPE_CHECKING

from geartrain.doors.http import job_json, problems
from geartrain.doors.http.request import JSON
from geartrain.doors.http.response import Response
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext
    from geartrain.doors.http.request import Request
    from geartrain.runtime.timers import DelayedCall


class ForegroundWatcher(Watcher):
    """One per request that waits."""

    __slots__ = ("_context", "_request", "_seconds", "_timer", "response")

    def __init__(self, context: "HttpContext", request: "Request", seconds: float) -> None:
        super().__init__()
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

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._end(job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._end(job, None)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._end(job, data)

    def _end(self, job: LiveJob, result: bytes | None) -> None:
        response = Response(job_json.ended(job, result, self._context.tick_loop.engine.now), 200, None, JSON)
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
