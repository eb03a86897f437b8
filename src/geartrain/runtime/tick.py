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
from geartrain.runtime.durability import CommitWaiter, Durability

# Timers closer together than this are one timer: loops count in milliseconds.
_EARLIER_BY: Final = 0.0005
LONGEST_WAIT: Final = 30.0


@mypyc_attr(allow_interpreted_subclasses=True)
class Writer(CommitWaiter):
    """A connection, as the tick knows it."""

    __slots__ = ()

    def flush(self) -> None:
        """Write what has gathered."""
        raise NotImplementedError


class TickLoop:
    """Shared by all doors of a server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, clock: Callable[[], float]) -> None:
        engine.now = clock()
        self.loop = loop
        self.engine = engine
        self.clock = clock
        self.durability = Durability()
        # Deadlines are by the wall clock and timers are not: when the clock is moved, we notice so late at most.
        self.longest_wait = LONGEST_WAIT
        self.after: list[Callable[[], None]] = []  # called when everything has been flushed
        self._dirty: list[Writer] = []
        self._call_soon = loop.call_soon
        self._on_tick: Callable[[], None] = self._run_tick
        self._due = False  # a beat has been asked for
        self._timed = False  # the engine knows what time it is in this tick
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER

    def begin_tick(self) -> Engine:
        """The engine, with the time of this tick. To be called by everything that the loop calls and that uses it.

        Nothing may be awaited between this and the engine's verbs.
        """
        if not self._timed:
            self._timed = True
            self.engine.now = self.clock()
            self.schedule_tick()
        return self.engine

    async def durable(self) -> None:
        """Wait until every change so far is on disk; a NotDurableError if it cannot be written."""
        await self.durability.durable()

    def flush_later(self, connection: Writer) -> None:
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
        if not self._timed:  # this tick has only something to write
            self._timed = True
            self.engine.now = self.clock()
        self._due = False
        dirty = self._dirty
        self._dirty = []
        for connection in dirty:
            connection.flush()
        for call in self.after:
            call()
        self._timed = False
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
        self.engine.tick(self.begin_tick().now)
