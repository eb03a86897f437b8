"""Server-sent events: what is to be said gathers in a feed that never grows, and leaves as fast as the peer reads."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from starlette.responses import Response

from geartrain import jsonbytes
from geartrain.admin import views
from geartrain.admin.events import event_names
from geartrain.doors.http import events
from geartrain.doors.http import request as api
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.runtime.timers import DelayedCall

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext


FRAMES_KEPT: Final = 1000
BYTES_KEPT: Final = 1024 * 1024
# A comment now and then keeps proxies from closing a stream on which nothing happens.
HEARTBEAT_SECONDS: Final = 15.0
_OPENING: Final = b"retry: 2000\n\n"
_HEARTBEAT: Final = b": still here\n\n"

Receive = Callable[[], Awaitable[Any]]


def frame(event: str, data: Any) -> bytes:
    """One event; JSON has no line ends in it.

    >>> frame("progress", {"numerator": 1})
    b'event: progress\\ndata: {"numerator":1}\\n\\n'
    """
    return b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(data))


class Feed:
    """What one listener has yet to hear. A listener that is too slow misses events, and hears that it did."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._frames: deque[bytes] = deque()
        self._size = 0  # bytes in the frames
        self._missed = 0
        self._news: asyncio.Future[None] | None = None  # somebody waits for the next frame
        self.ended = False

    def say(self, frame: bytes, last: bool = False) -> None:
        """One more frame; the last one is never left out."""
        if self.ended:
            return
        full = len(self._frames) >= FRAMES_KEPT or self._size + len(frame) > BYTES_KEPT
        if full and self._frames and not last:  # a single large one is as much as a peer may send at once anyway
            self.miss()
            return
        self._frames.append(frame)
        self._size += len(frame)
        self.ended = last
        self._announce()

    def miss(self) -> None:
        """Count an event that is left out; the number goes out with the next frame."""
        self._missed += 1

    def take(self) -> bytes:
        """All that has gathered; nothing if there is nothing."""
        if self._missed and self._frames:
            self._frames.append(frame("missed", {"missed": self._missed}))
            self._missed = 0
        taken = b"".join(self._frames)
        self._frames.clear()
        self._size = 0
        return taken

    def news(self) -> "asyncio.Future[None]":
        """Done when there is something to take."""
        if self._news is None or self._news.done():
            self._news = self._loop.create_future()
            if self._frames or self.ended:
                self._announce()
        return self._news

    def _announce(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class EventStream(Response):
    """An answer that goes on until its feed ends, its listener leaves, or the door closes."""

    media_type = "text/event-stream"

    def __init__(self, context: "HttpContext", feed: Feed, left: Callable[[], None]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["X-Accel-Buffering"] = "no"
        self._context = context
        self._feed = feed
        self._left = left  # called once, when nobody listens any more

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._context.listeners += 1
        gone = asyncio.ensure_future(hung_up(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send(_part(_OPENING))
            await self._pass_on(send, gone)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._context.listeners -= 1
            gone.cancel()
            self._left()

    async def _pass_on(self, send: Any, gone: "asyncio.Future[None]") -> None:
        feed, ending = self._feed, self._context.ending
        while not gone.done():
            taken = feed.take()
            if taken:
                await send(_part(taken))
            elif feed.ended or ending.done():
                return
            else:
                news = feed.news()
                await asyncio.wait({gone, ending, news}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not news.done() and not gone.done() and not ending.done():
                    await send(_part(_HEARTBEAT))


async def hung_up(receive: Receive) -> None:
    """Return when the peer has gone. Its request must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def require_room(context: "HttpContext") -> None:
    """Refuse one listener too many."""
    if context.listeners >= context.options.listeners:
        raise Refusal("unavailable", f"{context.listeners} listen already, which is the limit (http_listeners)")


def _part(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}


class Follower(Watcher):
    """Passes on what it hears to a feed."""

    __slots__ = ("engine", "feed")

    def __init__(self, feed: events.Feed, engine: Engine) -> None:
        super().__init__()
        self.feed = feed
        self.engine = engine

    def progress(self, job: LiveJob, progress: Progress) -> None:
        said = {"numerator": progress.numerator, "denominator": progress.denominator}
        self.feed.say(events.frame("progress", said))

    def data(self, job: LiveJob, data: bytes) -> None:
        self.feed.say(events.frame("data", {"data": jsonbytes.encode(data)}))

    def warning(self, job: LiveJob, data: bytes) -> None:
        self.feed.say(events.frame("warning", {"data": jsonbytes.encode(data)}))

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._end(job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._end(job, None)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._end(job, data)

    def _end(self, job: LiveJob, result: bytes | None) -> None:
        view = views.job_view(job, views.SHOWN_BYTES, result, self.engine.now)
        self.feed.say(ending(view), last=True)


def ending(view: views.JobView) -> bytes:
    """The last event of a job."""
    return events.frame("done" if view.state == "done" else "failed", view)


async def job_events(request: ApiRequest) -> Response:
    """GET /jobs/{handle}/events."""
    context = request.context
    events.require_room(context)
    feed = events.Feed(context.tick_loop.loop)
    follower = Follower(feed, context.engine)
    engine = context.now()
    job = engine.find(request.names[0])
    if job is None:
        feed.say(ending(await context.admin.job(request.names[0])), last=True)
        return events.EventStream(context, feed, _nobody)
    if job.progress is not None:
        follower.progress(job, job.progress)
    engine.watch(job, follower)
    return events.EventStream(context, feed, lambda: context.now().unwatch_all(follower))


def _nobody() -> None:
    """The job was over: nobody watches it."""


INTERVAL: Final = 1.0
# A person cannot read more, and a server that does a hundred thousand jobs a second must not describe each.
JOB_EVENTS_PER_SECOND: Final = 200


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """What a listener wants to hear."""

    jobs: Annotated[int, msgspec.Meta(ge=0, le=1, description="1: events of jobs as well, up to 200 a second")] = 0
    function: Annotated[str, msgspec.Meta(description="Only jobs of this function")] = ""
    what: Annotated[str, msgspec.Meta(description="Only these moments of jobs, with commas between")] = ""


class Listener:
    """One who listens, and what to."""

    __slots__ = ("feed", "function", "jobs", "left", "what")

    def __init__(self, feed: events.Feed, query: EventsQuery) -> None:
        self.feed = feed
        self.jobs = bool(query.jobs)
        self.function = jsonbytes.encode(api.raw(query.function)) if query.function else ""
        self.what = event_names(list(filter(None, query.what.split(","))))
        self.left = JOB_EVENTS_PER_SECOND  # events of jobs that it may still get in this second

    def wants(self, event: views.JobEvent) -> bool:
        """Whether it asked for events like this one."""
        return (
            self.jobs
            and (not self.function or event.function == self.function)
            and (not self.what or event.what in self.what)
        )


class Live:
    """The producer."""

    def __init__(self, context: "HttpContext") -> None:
        self._context = context
        self._listeners: set[Listener] = set()
        self._timer: DelayedCall | None = None
        self._attending = False

    def join(self, listener: Listener) -> None:
        """One more; it hears at once how things are."""
        self._listeners.add(listener)
        listener.feed.say(self._overview())
        if self._timer is None:
            self._timer = self._context.tick_loop.timers.call_later(INTERVAL, self._tell)
        self._attend()

    def leave(self, listener: Listener) -> None:
        """One less."""
        self._listeners.discard(listener)
        if not self._listeners and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._attend()

    def _tell(self) -> None:
        self._timer = self._context.tick_loop.timers.call_later(INTERVAL, self._tell)
        overview = self._overview()
        for listener in self._listeners:
            listener.left = JOB_EVENTS_PER_SECOND
            listener.feed.say(overview)

    def _overview(self) -> bytes:
        self._context.now()
        return events.frame("overview", self._context.admin.overview())

    def _attend(self) -> None:
        """Hear of jobs only while somebody wants to."""
        wanted = any(listener.jobs for listener in self._listeners)
        if wanted and not self._attending:
            self._context.admin.events.subscribe(self._heard)
        elif self._attending and not wanted:
            self._context.admin.events.unsubscribe(self._heard)
        self._attending = wanted

    def _heard(self, event: views.JobEvent) -> None:
        job_frame = b""
        for listener in self._listeners:
            if not listener.wants(event):
                continue
            if listener.left <= 0:
                listener.feed.miss()
                continue
            listener.left -= 1
            job_frame = job_frame or events.frame("job", event)
            listener.feed.say(job_frame)


async def server_events(request: ApiRequest) -> Response:
    """GET /events."""
    context = request.context
    events.require_room(context)
    listener = Listener(events.Feed(context.tick_loop.loop), request.query)
    context.live.join(listener)
    return events.EventStream(context, listener.feed, lambda: context.live.leave(listener))
