"""Events of jobs, for those who listen at another server of the cluster.

A server tells the others when somebody begins to listen there, and they send their events until nobody does. An event
of a job that runs at another server than its home comes from its home alone.
"""

from typing import Final

import msgspec

from geartrain.admin.events import JobEvents
from geartrain.admin.views import JobEvent
from geartrain.doors.peer.door import PeerDoor
from geartrain.doors.peer.link import PeerLink
from geartrain.wire import peer as wire

_INTEREST: Final = "events wanted"
_EVENTS: Final = "events"
_GATHER_SECONDS: Final = 0.05
# More than a person can read. A server that executes a hundred thousand jobs per second must not describe each.
_PER_SECOND: Final = 1000


class _EventBatch(msgspec.Struct, frozen=True, array_like=True):
    events: list[JobEvent]
    missed: int


_decoder: Final = msgspec.msgpack.Decoder(_EventBatch)


class EventRelay:
    """Sends events to servers that want them, and hands on what they send."""

    def __init__(self, door: PeerDoor, events: JobEvents) -> None:
        self._door = door
        self._events = events
        self._timers = door.tick_loop.timers
        self._wanting: set[int] = set()  # nodes of servers where somebody listens
        self._gathered: list[JobEvent] = []
        self._missed = 0
        self._left = _PER_SECOND  # events that may be sent in this second
        self._is_counting = False  # whether the second is running
        events.on_interest = self._tell_interest
        door.hearers[_INTEREST] = self._hear_interest
        door.hearers[_EVENTS] = self._hear_events
        door.on_link.append(self._begin)

    def _tell_interest(self, wanted: bool) -> None:
        self._door.tick_loop.begin_tick()
        self._door.tell(_INTEREST, msgspec.msgpack.encode(wanted))

    def _begin(self, link: PeerLink) -> None:
        """The other server may have begun anew, and knows of no interest."""
        if self._events.wants_cluster:
            link.send(wire.Tell(_INTEREST, msgspec.msgpack.encode(True)))

    def _hear_interest(self, link: PeerLink, content: bytes) -> None:
        if msgspec.msgpack.decode(content, type=bool):
            if not self._wanting:
                self._events.subscribe(self._gather)
            self._wanting.add(link.node)
        else:
            self._forget(link.node)

    def _forget(self, node: int) -> None:
        if node in self._wanting:
            self._wanting.discard(node)
            if not self._wanting:
                self._events.unsubscribe(self._gather)

    def _gather(self, event: JobEvent) -> None:
        """Take an event, in the middle of a verb of the engine."""
        if not self._is_counting:
            self._is_counting = True
            self._left = _PER_SECOND
            self._timers.call_later(1.0, self._end_second)
        if not self._left:
            self._missed += 1
            return
        self._left -= 1
        if not self._gathered:
            self._timers.call_later(_GATHER_SECONDS, self._send)
        self._gathered.append(event)

    def _end_second(self) -> None:
        self._is_counting = False
        if self._missed:
            self._send()

    def _send(self) -> None:
        name = self._door.options.name
        events = [msgspec.structs.replace(event, server=name) for event in self._gathered]
        content = msgspec.msgpack.encode(_EventBatch(events, self._missed))
        self._gathered, self._missed = [], 0
        self._door.tick_loop.begin_tick()
        for node in list(self._wanting):
            link = self._door.links.get(node)
            if link is None or not link.is_open:
                self._forget(node)  # it says so again over the next link
            else:
                link.send(wire.Tell(_EVENTS, content))

    def _hear_events(self, link: PeerLink, content: bytes) -> None:
        relayed = _decoder.decode(content)
        self._events.relay(relayed.events, relayed.missed)
