"""What this server offers to the others: its crews, and how many jobs each would take.

A server with idle workers says how many jobs it has *room* for. That is one for each idle worker, and as many more as
the crew has finished in the last hundredth of a second, so that workers with short jobs need not wait for the next one.
Workers with long jobs get none ahead: nothing is hoarded.

Where jobs wait at several servers, those of the highest priority and, among equals, the oldest come first. A server
says which of its jobs wait (`Waiting`), and one with jobs of its own for the same workers asks for one job for each
worker if they come before its own. So of jobs that come later, at most one per worker starts before it.

The engine notes which crews have changed, and at the end of each tick the others hear of those alone.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from geartrain.engine.crew import Crew
from geartrain.engine.function import Function
from geartrain.wire import peer as wire

if TYPE_CHECKING:
    from geartrain.doors.peer.door import PeerDoor
    from geartrain.doors.peer.link import PeerLink

AHEAD_SECONDS: Final = 0.01  # for so long there may be jobs waiting for a crew


Place = tuple[int, float]  # of a job among those of its function: its priority and its time


class _LinkCounts:
    """What one other server was told of a crew."""

    __slots__ = ("limit", "outstanding", "received", "waiting")

    def __init__(self) -> None:
        self.received = 0  # jobs that came over this connection
        self.limit = 0  # up to which jobs may be sent, as it was told
        self.outstanding = 0  # jobs that have not ended
        self.waiting: dict[bytes, Place] = {}  # the first jobs that wait there, by function


class _Offer:
    """A crew, as the others know it."""

    __slots__ = ("_burst", "_ended", "_window", "crew", "functions", "links", "number", "workers")

    def __init__(self, number: int, crew: Crew) -> None:
        self.number = number
        self.crew = crew
        self.functions: dict[bytes, bool] = {}  # by name: whether a job of it goes to every idle worker
        self.workers = 0
        self.links: dict[PeerLink, _LinkCounts] = {}
        self._burst = 0
        self._ended = 0  # borrowed jobs, in the window
        self._window = 0.0  # when it began, in the engine's time

    def counts(self, link: "PeerLink") -> _LinkCounts:
        """What that server was told."""
        counts = self.links.get(link)
        if counts is None:
            counts = self.links[link] = _LinkCounts()
        return counts

    def count_ended(self, now: float) -> None:
        """A borrowed job has ended: the more of them, the more may be sent ahead."""
        self._ended += 1
        elapsed = now - self._window
        if not 0.0 <= elapsed < AHEAD_SECONDS:
            # The first one after a pause says nothing about the rate.
            self._burst = math.floor(self._ended * AHEAD_SECONDS / elapsed) if elapsed > 0.0 else 0
            self._ended = 0
            self._window = now

    def slow_down(self) -> None:
        """Jobs that were sent ahead had to wait for too long."""
        self._burst = 0

    def room(self, counts: _LinkCounts) -> int:
        """How many jobs this server would take for the crew, from one other server."""
        outstanding = sum(counts.outstanding for counts in self.links.values())
        waiting = max(outstanding - self.crew.size, 0)
        room = self.crew.idle_size + max(self._burst - waiting, 0)
        if not room and counts.waiting and waiting < self.crew.size and self._comes_first(counts.waiting):
            room = self.crew.size - waiting
        return room

    def _comes_first(self, waiting: "dict[bytes, Place]") -> bool:
        """Whether a job that waits elsewhere comes before all that wait here for the same workers."""
        own = [place for function in self.crew.functions if (place := first_place(function)) is not None]
        theirs = [waiting[function.name] for function in self.crew.functions if function.name in waiting]
        return bool(theirs) and (not own or min(theirs) < min(own))


def first_place(function: Function) -> Place | None:
    """The place of the first job of a function that waits."""
    for priority, queue in enumerate(function.queues):
        if queue.size:
            first = queue.first()
            return (priority, first.run_at) if first is not None else None
    return None


class Offers:
    """The crews of this server."""

    def __init__(self, door: "PeerDoor") -> None:
        self._door = door
        self._engine = door.tick_loop.engine
        self._engine.changed_crews = []
        self._by_crew: dict[Crew, _Offer] = {}
        self._by_number: dict[int, _Offer] = {}
        self._next_number = 1
        self.is_withdrawn = False  # this server is about to stop, and takes no jobs of others

    def withdraw(self) -> None:
        """Take no more jobs of other servers."""
        self.is_withdrawn = True
        for offer in self._by_number.values():
            for link, counts in offer.links.items():
                counts.limit = counts.received
                link.send(wire.Room(offer.number, counts.received, 0))

    def announce(self, link: "PeerLink") -> None:
        """Tell a server with a new connection of all crews; their room comes later."""
        for offer in self._by_number.values():
            offer.links.pop(link, None)
            if offer.functions:
                link.send(self._frame(offer))

    def announce_room(self, link: "PeerLink") -> None:
        """Tell a server that has all crews how much room there is."""
        for offer in self._by_number.values():
            self._send_room(offer, link)

    def received(self, link: "PeerLink", number: int) -> None:
        """A job came for this crew."""
        offer = self._by_number.get(number)
        if offer is not None:
            counts = offer.counts(link)
            counts.received += 1
            counts.outstanding += 1
            offer.crew.note_change()

    def ended(self, link: "PeerLink", number: int) -> None:
        """A borrowed job of this crew has ended, or went back."""
        offer = self._by_number.get(number)
        if offer is not None:
            counts = offer.counts(link)
            counts.outstanding = max(counts.outstanding - 1, 0)
            offer.count_ended(self._engine.now)
            offer.crew.note_change()

    def waits(self, link: "PeerLink", frame: wire.Waiting) -> None:
        """Another server tells which jobs wait there."""
        places = {
            name: (priority, run_at)
            for name, priority, run_at in zip(frame.functions, frame.priorities, frame.run_at, strict=False)
        }
        for offer in self._by_number.values():
            mine = {name: place for name, place in places.items() if name in offer.functions}
            counts = offer.counts(link)
            if mine or counts.waiting:
                counts.waiting = mine
                offer.crew.note_change()

    def comes_first(self, link: "PeerLink", frame: wire.Lend) -> bool:
        """Whether a job is here because it comes before those that wait for the same workers."""
        offer = self._by_number.get(frame.crew)
        return offer is not None and frame.function in offer.counts(link).waiting

    def slow_down(self, number: int) -> None:
        """A job of this crew waited for too long."""
        offer = self._by_number.get(number)
        if offer is not None:
            offer.slow_down()

    def tell_changes(self) -> None:
        """Tell the others what has changed in this tick."""
        changed = self._engine.changed_crews
        if not changed:
            return
        links = [link for link in self._door.links.values() if link.is_open]
        for crew in changed:
            crew.is_changed = False
            offer = self._offer(crew)
            if offer is not None:
                self._tell_change(offer, links)
        changed.clear()

    def _offer(self, crew: Crew) -> _Offer | None:
        """The offer of a crew, made when it has functions; None if others need not hear of it."""
        offer = self._by_crew.get(crew)
        if offer is None and crew.size and not crew.is_distant and crew.functions:
            if any(function.name in self._engine.builtin_workers for function in crew.functions):
                return None  # the server itself
            offer = _Offer(self._next_number, crew)
            self._next_number += 1
            self._by_crew[crew] = self._by_number[offer.number] = offer
        return offer

    def _tell_change(self, offer: _Offer, links: Iterable["PeerLink"]) -> None:
        crew = offer.crew
        functions = {function.name: function.broadcast for function in crew.functions} if crew.size else {}
        is_new = functions != offer.functions or crew.size != offer.workers
        if is_new:
            offer.functions, offer.workers = functions, crew.size
        for link in links:
            if is_new:
                link.send(self._frame(offer))
            if functions:
                self._send_room(offer, link)
        if not functions:
            del self._by_crew[crew]
            del self._by_number[offer.number]

    def _frame(self, offer: _Offer) -> wire.CrewOffer:
        names, broadcast = list(offer.functions), list(offer.functions.values())
        return wire.CrewOffer(offer.number, names, broadcast, offer.workers if names else 0)

    def _send_room(self, offer: _Offer, link: "PeerLink") -> None:
        if self.is_withdrawn:
            return
        counts = offer.counts(link)
        room = offer.room(counts)
        limit = counts.received + room
        if limit != counts.limit:
            counts.limit = limit
            link.send(wire.Room(offer.number, counts.received, room))
