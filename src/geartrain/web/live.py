"""The live events of the whole server: one producer for all listeners, which works only while there are any."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from starlette.responses import Response

from geartrain.steering import views
from geartrain.web import call, stream
from geartrain.web.call import Call

if TYPE_CHECKING:
    from geartrain.web.house import House

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

    __slots__ = ("feed", "function", "jobs", "what")

    def __init__(self, feed: stream.Feed, query: EventsQuery) -> None:
        self.feed = feed
        self.jobs = bool(query.jobs)
        self.function = views.text(call.raw(query.function)) if query.function else ""
        self.what = frozenset(filter(None, query.what.split(",")))

    def wants(self, event: views.JobEvent) -> bool:
        """Whether it asked for events like this one."""
        return (
            self.jobs
            and (not self.function or event.function == self.function)
            and (not self.what or event.what in self.what)
        )


class Live:
    """The producer."""

    def __init__(self, house: "House") -> None:
        self._house = house
        self._listeners: set[Listener] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._attending = False
        self._left_this_second = JOB_EVENTS_PER_SECOND

    def join(self, listener: Listener) -> None:
        """One more; it hears at once how things are."""
        self._listeners.add(listener)
        listener.feed.say(self._overview())
        if self._timer is None:
            self._timer = self._house.tick_loop.loop.call_later(INTERVAL, self._tell)
        self._attend()

    def leave(self, listener: Listener) -> None:
        """One less."""
        self._listeners.discard(listener)
        if not self._listeners and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._attend()

    def _tell(self) -> None:
        self._timer = self._house.tick_loop.loop.call_later(INTERVAL, self._tell)
        self._left_this_second = JOB_EVENTS_PER_SECOND
        overview = self._overview()
        for listener in self._listeners:
            listener.feed.say(overview)

    def _overview(self) -> bytes:
        self._house.now()
        return stream.frame("overview", self._house.steward.overview())

    def _attend(self) -> None:
        """Hear of jobs only while somebody wants to."""
        wanted = any(listener.jobs for listener in self._listeners)
        if wanted and not self._attending:
            self._house.steward.subscribe(self._heard)
        elif self._attending and not wanted:
            self._house.steward.unsubscribe(self._heard)
        self._attending = wanted

    def _heard(self, event: views.JobEvent) -> None:
        if self._left_this_second <= 0:
            return
        wanting = [listener for listener in self._listeners if listener.wants(event)]
        if wanting:
            self._left_this_second -= 1
            told = stream.frame("job", event)
            for listener in wanting:
                listener.feed.say(told)


async def events(asked: Call) -> Response:
    """GET /events."""
    house = asked.house
    stream.require_room(house)
    listener = Listener(stream.Feed(house.tick_loop.loop), asked.query)
    house.live.join(listener)
    return stream.EventStream(house, listener.feed, lambda: house.live.leave(listener))
