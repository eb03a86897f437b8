"""The beat of the server: one flush of all connections per tick of the loop, and the engine's timer.

On loopback a system call costs more than handling a packet, so answers gather in each connection's buffer while
the loop hands out what it has read, and leave with one write per connection when it is through.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine

# Timers closer together than this are one timer: loops count in milliseconds.
_EARLIER_BY: Final = 0.0005
LONGEST_WAIT: Final = 30.0


@mypyc_attr(allow_interpreted_subclasses=True)
class Flushable:
    """A connection that has something to say."""

    __slots__ = ()

    def flush(self) -> None:
        """Write what has gathered."""
        raise NotImplementedError

    def settle(self, ticket: int, failed: bool) -> None:
        """What was held until this ticket is durable may leave now; or it could not be made durable."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Durability:
    """Knows what is not yet on disk. This one is for a store that has no disk: nothing ever waits."""

    def hold(self, connection: Flushable) -> int:
        """A ticket for everything that has been journalled so far; 0 if all of it is durable.

        When the ticket is due, `connection.settle` is called with it.
        """
        return 0


class TickLoop:
    """Shared by all doors of a server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, clock: Callable[[], float]) -> None:
        self.loop = loop
        self.engine = engine
        self.clock = clock
        self.durability = Durability()
        # Deadlines are by the wall clock and timers are not: when the clock is moved, we notice so late at most.
        self.longest_wait = LONGEST_WAIT
        self.after: list[Callable[[], None]] = []  # called when everything has been flushed
        self._dirty: list[Flushable] = []
        self._call_soon = loop.call_soon
        self._on_tick: Callable[[], None] = self._run_tick
        self._due = False  # a beat has been asked for
        self._timed = False  # the engine knows what time it is in this tick
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER

    def begin_tick(self) -> None:
        """Something was read: the engine is told the time, once per tick, and there will be a beat.

        There has to be one even if nobody is answered: a worker that reports must be heard by the journal.
        """
        if not self._timed:
            self._timed = True
            self.engine.now = self.clock()
            self.schedule_tick()

    def flush_later(self, connection: Flushable) -> None:
        """Flush this connection at the end of the tick."""
        self._dirty.append(connection)
        self.schedule_tick()

    def schedule_tick(self) -> None:
        """Have a beat even if no connection has anything to say."""
        if not self._due:
            self._due = True
            self._call_soon(self._on_tick)

    def close(self) -> None:
        """Let go of the loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run_tick(self) -> None:
        self._due = self._timed = False
        dirty = self._dirty
        self._dirty = []
        for connection in dirty:
            connection.flush()
        for call in self.after:
            call()
        self._arm()

    def _arm(self) -> None:
        """Set the timer to the engine's next deadline, unless it is set early enough already."""
        deadline = self.engine.deadline()
        if deadline >= self._timer_at - _EARLIER_BY:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        delay = min(max(deadline - self.clock(), 0.0), self.longest_wait)
        self._timer = self.loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = NEVER
        self.engine.tick(self.clock())
        self.schedule_tick()
