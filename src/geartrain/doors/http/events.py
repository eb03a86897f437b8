"""Server-sent events: `GET /events` for the whole server, `GET /jobs/{handle}/events` for one job.

Events wait in a queue per client, which is bounded, and are sent as fast as the client reads them.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from geartrain import jsonbytes
from geartrain.admin import views
from geartrain.admin.events import event_names
from geartrain.admin.job_follow import LIVE_STATES, follow
from geartrain.admin.verbs import LOCAL, VERBS
from geartrain.doors.http import request as api
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest, Request
from geartrain.doors.http.response import Response, StreamResponse
from geartrain.doors.http.watcher import StreamWatcher
from geartrain.errors import AdminError
from geartrain.rights import READ, Identity
from geartrain.runtime.timers import DelayedCall

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext

FRAMES_MOST: Final = 1000
BYTES_MOST: Final = 1024 * 1024
# Proxies close a stream on which nothing is sent: it gets a comment from time to time.
HEARTBEAT_SECONDS: Final = 15.0
OVERVIEW_SECONDS: Final = 1.0
# More than a person can read. A server that executes a hundred thousand jobs per second must not describe each.
JOB_EVENTS_PER_SECOND: Final = 200
_OPENING: Final = b"retry: 2000\n\n"
_HEARTBEAT: Final = b": heartbeat\n\n"


def frame(event: str, data: Any) -> bytes:
    """One event in the format of server-sent events. JSON contains no line breaks.

    >>> frame("progress", {"numerator": 1})
    b'event: progress\\ndata: {"numerator":1}\\n\\n'
    """
    return b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(data))


class EventQueue:
    """Events that have not been sent to a client yet. A client that is too slow misses events, and is told how many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._frames: deque[bytes] = deque()
        self._size = 0  # bytes in the frames
        self._missed = 0
        self._not_empty: asyncio.Future[None] | None = None  # awaited by the stream
        self.ended = False

    def put(self, event: str, data: Any, last: bool = False) -> None:
        """Add an event; nothing can be added after the last one."""
        self.put_frame(frame(event, data), last)

    def put_frame(self, frame: bytes, last: bool = False) -> None:
        """Add an event that is written already. The last one is never left out."""
        if self.ended:
            return
        full = len(self._frames) >= FRAMES_MOST or self._size + len(frame) > BYTES_MOST
        if full and self._frames and not last:  # a single large frame is no larger than a packet may be anyway
            self.miss()
            return
        self._frames.append(frame)
        self._size += len(frame)
        self.ended = last
        self._wake()

    def miss(self, count: int = 1) -> None:
        """Count events that are left out; the number is sent with the next frame."""
        self._missed += count

    def take(self) -> bytes:
        """Remove and return all frames, joined."""
        if self._missed and self._frames:
            self._frames.append(frame("missed", {"missed": self._missed}))
            self._missed = 0
        taken = b"".join(self._frames)
        self._frames.clear()
        self._size = 0
        return taken

    def not_empty(self) -> "asyncio.Future[None]":
        """Done when there is something to take, or the queue has ended."""
        if self._not_empty is None or self._not_empty.done():
            self._not_empty = self._loop.create_future()
            if self._frames or self.ended:
                self._wake()
        return self._not_empty

    def _wake(self) -> None:
        if self._not_empty is not None and not self._not_empty.done():
            self._not_empty.set_result(None)


class EventStreamCount:
    """How many event streams are open, in all and by the address of the client."""

    def __init__(self, most: int, most_per_client: int) -> None:
        self._most = most
        self._most_per_client = most_per_client or most
        self._open = 0
        self._by_client: dict[str, int] = {}

    def check(self, client: str) -> None:
        """Refuse one more stream if there are too many."""
        if self._open >= self._most:
            raise Refusal("unavailable", f"{self._open} event streams are open: the limit is http_listeners")
        own = self._by_client.get(client, 0)
        if own >= self._most_per_client:
            raise Refusal(
                "unavailable", f"{own} event streams of {client} are open: the limit is http_listeners_per_client"
            )

    def opened(self, client: str) -> None:
        self._open += 1
        self._by_client[client] = self._by_client.get(client, 0) + 1

    def closed(self, client: str) -> None:
        self._open -= 1
        left = self._by_client.pop(client) - 1
        if left:
            self._by_client[client] = left


class EventStreamResponse(StreamResponse):
    """Sends a queue until it ends, the client disconnects, or the door closes."""

    def __init__(self, request: ApiRequest, queue: EventQueue, on_close: Callable[[], object]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"}, media_type="text/event-stream")
        self._context = request.context
        self._identity = request.identity
        self._client = request.context.proxies.client_of(request.http)
        self._queue = queue
        self._on_close = on_close

    async def send(self, request: Request) -> None:
        """Send events as they come."""
        self._context.streams.opened(self._client)
        disconnected: asyncio.Future[None] = self._context.tick_loop.loop.create_future()

        def disconnect() -> None:
            if not disconnected.done():
                disconnected.set_result(None)

        request.on_disconnect = disconnect
        if request.disconnected:
            disconnect()
        try:
            await _send(request, _OPENING)
            await self._send_queue(request, disconnected)
        finally:
            request.on_disconnect = None
            self._context.streams.closed(self._client)
            self._on_close()

    async def _send_queue(self, request: Request, disconnected: "asyncio.Future[None]") -> None:
        queue, closing = self._queue, self._context.closing
        while not disconnected.done() and not (self._identity is not None and self._identity.revoked):
            data = queue.take()
            if data:
                await _send(request, data)
            elif queue.ended or closing.done():
                return
            else:
                awaited = {disconnected, closing, queue.not_empty()}
                done, _ = await asyncio.wait(awaited, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    await _send(request, _HEARTBEAT)


async def _send(request: Request, data: bytes) -> None:
    assert request.connection is not None
    await request.connection.send_part(request, data)


def _new_queue(request: ApiRequest) -> EventQueue:
    """A queue for one more stream, unless there are too many."""
    context = request.context
    context.streams.check(context.proxies.client_of(request.http))
    return EventQueue(context.tick_loop.loop)


async def job_events(request: ApiRequest) -> Response:
    """GET /jobs/{handle}/events."""
    context = request.context
    queue = _new_queue(request)
    engine = request.begin_tick()
    watcher = StreamWatcher(engine, queue)
    named = {"handle": request.names[0]}
    job = engine.find(request.names[0])
    if job is None or context.admin.is_elsewhere(named):
        view = await context.admin.call(VERBS["job"], named, request.identity, request)
        following = asyncio.ensure_future(_follow(context, request.names[0], view, watcher))
        return EventStreamResponse(request, queue, following.cancel)
    if not engine.may_follow(job.function):
        raise Refusal("forbidden", "the scope read or submit is required for the function of this job")
    if job.progress is not None:
        watcher.progress(job, job.progress)
    engine.watch(job, watcher)
    return EventStreamResponse(request, queue, lambda: context.tick_loop.begin_tick().unwatch_all(watcher))


async def _follow(context: "HttpContext", handle: bytes, view: views.JobView, watcher: StreamWatcher) -> None:
    """Write the events of a job that has ended, or that another server of the cluster has."""
    try:
        view = (await follow(context.admin, handle, view, watcher, lambda: not context.closing.done())).view
    except AdminError as error:  # a foreground job has ended, and nothing is kept of it
        view = msgspec.structs.replace(view, state="failed", reason=error.text)
    if view.state not in LIVE_STATES:
        watcher.put_end(view)


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which events to send."""

    jobs: Annotated[int, msgspec.Meta(ge=0, le=1, description="1: events of jobs as well, up to 200 per second")] = 0
    function: Annotated[str, msgspec.Meta(description="Only jobs of this function")] = ""
    what: Annotated[str, msgspec.Meta(description="Only these events of jobs, separated by commas")] = ""
    local: Annotated[bool, msgspec.Meta(description=LOCAL.help)] = False


class EventSubscription:
    """A client of `GET /events`, and which events it gets."""

    __slots__ = ("function", "identity", "jobs", "local", "queue", "remaining", "what")

    def __init__(self, queue: EventQueue, query: EventsQuery, identity: Identity | None = None) -> None:
        self.queue = queue
        self.identity = identity  # of the client
        self.jobs = bool(query.jobs)
        self.local = query.local  # nothing of other servers of the cluster
        self.function = jsonbytes.encode(api.raw(query.function)) if query.function else ""
        self.what = event_names(list(filter(None, query.what.split(","))))
        self.remaining = JOB_EVENTS_PER_SECOND  # events of jobs that it may still get in this second

    def wants(self, event: views.JobEvent) -> bool:
        """Whether the client gets this event."""
        return (
            self.jobs
            and not (self.local and event.server)
            and (not self.function or event.function == self.function)
            and (not self.what or event.what in self.what)
            and (self.identity is None or self.identity.rights.allow(READ, jsonbytes.decode(event.function)))
        )


class ServerEvents:
    """Sends the overview to all subscriptions once a second, and events of jobs to those that want them."""

    def __init__(self, context: "HttpContext") -> None:
        self._context = context
        self._subscriptions: set[EventSubscription] = set()
        self._timer: DelayedCall | None = None
        self._observing = False  # events of jobs
        self._asking: asyncio.Task[None] | None = None  # the other servers of a cluster

    def add(self, subscription: EventSubscription) -> None:
        """Add a client; it gets an overview at once."""
        self._subscriptions.add(subscription)
        if subscription.local or self._context.admin.is_alone:
            subscription.queue.put_frame(self._overview())
        else:
            self._ask_cluster()
        if self._timer is None:
            self._timer = self._context.tick_loop.timers.call_later(OVERVIEW_SECONDS, self._send_overview)
        self._observe()

    def remove(self, subscription: EventSubscription) -> None:
        """Remove a client."""
        self._subscriptions.discard(subscription)
        if not self._subscriptions and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if self._asking is not None:
                self._asking.cancel()
        self._observe()

    def _send_overview(self) -> None:
        self._timer = self._context.tick_loop.timers.call_later(OVERVIEW_SECONDS, self._send_overview)
        is_alone = self._context.admin.is_alone
        overview = self._overview()
        for subscription in self._subscriptions:
            subscription.remaining = JOB_EVENTS_PER_SECOND
            if subscription.local or is_alone:
                subscription.queue.put_frame(overview)
        if not is_alone:
            self._ask_cluster()

    def _ask_cluster(self) -> None:
        """Send the overview of the whole cluster when the other servers have answered. One request is under way."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._send_cluster())

    async def _send_cluster(self) -> None:
        sent = frame("overview", await self._context.admin.call(VERBS["overview"], {}))
        for subscription in self._subscriptions:
            if not subscription.local:
                subscription.queue.put_frame(sent)

    def _overview(self) -> bytes:
        return frame("overview", self._context.admin.overview())

    def _observe(self) -> None:
        """Observe jobs only while a client wants their events."""
        wanted = any(subscription.jobs for subscription in self._subscriptions)
        if wanted and not self._observing:
            self._context.admin.events.subscribe_cluster(self)
        elif self._observing and not wanted:
            self._context.admin.events.unsubscribe_cluster(self)
        self._observing = wanted

    def miss(self, count: int) -> None:
        """Another server has left out so many events of jobs."""
        for subscription in self._subscriptions:
            if subscription.jobs and not subscription.local:
                subscription.queue.miss(count)

    def hear(self, event: views.JobEvent) -> None:
        """Send an event of a job to those that want it."""
        job_frame = b""
        for subscription in self._subscriptions:
            if not subscription.wants(event):
                continue
            if subscription.remaining <= 0:
                subscription.queue.miss()
                continue
            subscription.remaining -= 1
            job_frame = job_frame or frame("job", event)
            subscription.queue.put_frame(job_frame)


async def server_events(request: ApiRequest) -> Response:
    """GET /events."""
    context = request.context
    subscription = EventSubscription(_new_queue(request), request.query, request.identity)
    context.server_events.add(subscription)
    return EventStreamResponse(request, subscription.queue, lambda: context.server_events.remove(subscription))
