"""One peer of any door: what it has to be told gathers here, and leaves once per tick.

How memory stays bounded when a peer does not read: above the high-water mark we stop reading from it, so it can
cause no more answers; what others cause for it (results of its jobs) may still gather up to the write limit,
and when that is passed the connection is dropped.
"""

import asyncio
import logging
from typing import Any, Final

from mypy_extensions import mypyc_attr

from geartrain.doors.door import Door
from geartrain.runtime.tick import Writer

_HIGH_WATER: Final = 256 * 1024
# Larger gatherings are handed over piece by piece instead of being copied into one.
_JOIN_UP_TO: Final = 256 * 1024
# A packet that arrives in parts has to bring this many bytes between two looks.
_CRAWL: Final = 1024

_log = logging.getLogger("geartrain.doors")


class Hold:
    """Acknowledgements of one connection that wait for the same ticket; everything after them waits too."""

    __slots__ = ("acknowledgements", "start", "ticket")

    def __init__(self, ticket: int, start: int) -> None:
        self.ticket = ticket
        self.start = start  # the number of the first thing said that has to wait
        # Which of the things said are acknowledgements, and what to say instead if they turn out false.
        self.acknowledgements: list[tuple[int, bytes]] = []


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(Writer):
    """An asyncio protocol without the base class, so that it can be compiled; doors make subclasses."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.tick_loop = door.tick_loop
        self.engine = door.tick_loop.engine
        self.clock = door.tick_loop.clock
        self.transport: Any = None
        self.peer = "?"
        self.closing = False
        self.out: list[bytes] = []
        self._said = 0  # how many things have left: what is in `out` is numbered from here
        self._holds: list[Hold] = []
        self._close_when_settled = False
        self._paused = False  # the peer does not read fast enough
        self._stale_looks = 0
        self._seen = (0, 0)  # what the last look saw of an incomplete packet

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Somebody came in."""
        self.transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else (name or "unix socket")
        self.door.connections.add(self)
        if _log.isEnabledFor(logging.DEBUG):
            self.log(logging.DEBUG, "a peer connected")

    def data_received(self, data: bytes) -> None:
        """Bytes arrived."""
        raise NotImplementedError

    def eof_received(self) -> bool:
        """The peer says no more; it is told what it still has to be told, then the connection closes."""
        self.close()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """The peer is gone: undo what depended on it."""
        self.closing = True
        self.out.clear()
        self._holds.clear()
        self.door.connections.discard(self)
        self.engine.now = self.clock()
        self.lost()
        self.tick_loop.schedule_tick()
        if _log.isEnabledFor(logging.DEBUG):
            self.log(logging.DEBUG, "a peer is gone", str(error) if error else "")

    def pause_writing(self) -> None:
        """The peer does not read what it is sent."""
        self._paused = True
        if not self.closing:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._paused = False
        self._stale_looks = 0
        if not self.closing and not self._close_when_settled:
            self.transport.resume_reading()

    # What doors use

    def lost(self) -> None:
        """A subclass tells the engine that its workers and watchers are gone."""

    def arriving(self) -> tuple[int, int]:
        """Which incomplete packet is arriving (a number that changes with each), and how much is there."""
        return (0, 0)

    def stalled(self) -> None:
        """An incomplete packet does not go on; a subclass says so to the peer before it closes."""
        self.close()

    def write(self, data: bytes) -> None:
        """Say something at the end of the tick."""
        out = self.out
        if not out:
            self.tick_loop.flush_later(self)
        out.append(data)

    def acknowledge(self, data: bytes, instead: bytes) -> None:
        """Say something when all that was journalled so far is durable; or, if it cannot be, something else.

        What is said after it waits as well: protocols match answers to requests by their order.
        """
        ticket = self.tick_loop.durability.ticket(self)
        if ticket:
            number = self._said + len(self.out)
            if not self._holds or self._holds[-1].ticket != ticket:
                self._holds.append(Hold(ticket, number))
            self._holds[-1].acknowledgements.append((number, instead))
        self.write(data)

    def commit_ended(self, ticket: int, failed: bool) -> None:
        """Send the acknowledgements that waited for this ticket, or what is to be sent instead of them."""
        while self._holds and self._holds[0].ticket <= ticket:
            hold = self._holds.pop(0)
            if failed:
                for number, instead in hold.acknowledgements:
                    self.out[number - self._said] = instead
        self.flush()
        if self._close_when_settled and not self._holds:
            self.close()

    def flush(self) -> None:
        """Write what has gathered, with one call; what is said after closing is heard by nobody."""
        out = self.out
        if not out:
            return
        if self._holds:
            free = self._holds[0].start - self._said
            if not free:
                return
            self.out = out[free:]
            out = out[:free]
        else:
            self.out = []
        self._said += len(out)
        if self.closing:
            return
        transport = self.transport
        if self._paused and transport.get_write_buffer_size() > self.door.limits.write_limit:
            self.drop("it does not read what it is sent")
            return
        if len(out) == 1:
            transport.write(out[0])
        elif _size(out) <= _JOIN_UP_TO:
            transport.write(b"".join(out))
        else:
            transport.writelines(out)

    def close(self) -> None:
        """Say what has gathered, then close; an acknowledgement that waits for the disk is waited for."""
        if self.closing:
            return
        self.flush()
        if self._holds:
            self._close_when_settled = True
            self.transport.pause_reading()  # nothing that it says from now on is heard
            return
        self.closing = True
        self.transport.close()

    def drop(self, why: str) -> None:
        """Close at once, without waiting for the peer to read."""
        self.closing = True
        self.out.clear()
        self._holds.clear()
        self.log(logging.WARNING, "a connection was dropped", why)
        self.transport.abort()

    def look(self, looks_per_timeout: int) -> None:
        """Called now and then: a packet that does not go on, or a farewell that is not read, ends here."""
        number, size = self.arriving()
        before, before_size = self._seen
        self._seen = (number, size)
        stalls = size > 0 and number == before and size - before_size < _CRAWL
        if not (stalls or (self.closing and self._paused)):
            self._stale_looks = 0
            return
        self._stale_looks += 1
        if self._stale_looks < looks_per_timeout:
            return
        if self.closing:
            self.drop("it does not read what it is sent")
        else:
            self.stalled()

    def log(self, level: int, what: str, why: str = "") -> None:
        """One line about this peer."""
        fields = {"door": self.door.name, "peer": self.peer}
        if why:
            fields["why"] = why
        _log.log(level, what, extra={"fields": fields})


def _size(pieces: list[bytes]) -> int:
    size = 0
    for piece in pieces:
        size += len(piece)
    return size
