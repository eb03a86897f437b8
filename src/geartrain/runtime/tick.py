"""The tick: everything that happens in one turn of the loop.

A tick begins with the first thing that the loop calls (a read, a timer, a task that goes on). There the engine's time
is set, once. It ends when the loop has called everything that was ready: each connection writes what has gathered for
its peer, with one system call, since on loopback that costs more than handling a packet; the committer takes the
changes; and the engine's next deadline becomes a timer.

While the loop finds one connection to read at a time, there is nothing to gather, and a tick ends with its read: having
the loop call its end costs a tenth of the instructions of a job. Every few ticks the loop calls it nevertheless, and
that shows whether there is still one read in a tick.

A connection whose input is suspended is continued in a later tick, after the loop has looked for other input. Several
of them take turns.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine
from geartrain.runtime.durability import CommitWaiter, Durability
from geartrain.runtime.other_servers import DistantServers
from geartrain.runtime.timers import PRECISION, DelayedCall, Timers
from geartrain.runtime.value_feed import ValueFeed

# Deadlines are by the wall clock and timers are not: a clock that was moved is noticed after this many seconds.
LONGEST_WAIT: Final = 30.0
# Seconds for which connections are continued before the loop looks for other input.
_CONTINUE_FOR: Final = 0.002
# After as many ticks in a row with one read each...
_SINGLE_READS: Final = 4
# ... as many ticks end with their read.
_ENDED_BY_READS: Final = 16

_log = logging.getLogger("geartrain.server")


@mypyc_attr(allow_interpreted_subclasses=True)
class Writer(CommitWaiter):
    """A connection, as the tick knows it, or a long request, which is only continued."""

    __slots__ = ()

    def flush(self) -> None:
        """Write what has gathered."""
        raise NotImplementedError

    def continue_input(self) -> None:
        """Handle input that was left, for one turn."""
        raise NotImplementedError


class TickLoop:
    """One per server: asyncio's loop, as doors, admin and store see it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, clock: Callable[[], float]) -> None:
        engine.now = clock()
        self.loop = loop
        self.engine = engine
        self.clock = clock  # epoch seconds
        self.durability = Durability()
        self.values = ValueFeed()  # what other servers save
        self.others = DistantServers()
        self.timers = Timers(loop, self.begin_tick)
        self.longest_wait = LONGEST_WAIT
        self.after: list[Callable[[], None]] = []  # called at the end of each tick, when everything has been flushed
        self.before_flush: list[Callable[[], None]] = []  # called at the end of each tick, before that
        self.inflight_bytes = 0  # of incomplete packets, of all peers
        self._dirty: list[Writer] = []  # have something to write
        self._suspended: deque[Writer] = deque()  # are to be continued, the one that waits longest first
        self._continue_wanted = False  # there are some
        self._continue_due = False  # continuing them is scheduled
        self._on_continue: Callable[[], None] = self._continue
        self._call_soon = loop.call_soon
        self._on_tick: Callable[[], None] = self._run_tick
        self._due = False  # the end of a tick is scheduled
        self._timed = False  # the engine has the time of this tick
        self._reads: i64 = 0  # in this tick
        self._single_reads: i64 = 0  # in how many ticks in a row there was one read
        self._ended_by_reads: i64 = 0  # how many of the next ticks end with their read
        self._deadline = NEVER  # for which a timer is set
        self._deadline_call: DelayedCall | None = None

    def begin_tick(self) -> Engine:
        """The engine, with the time of this tick. To be called by everything that the loop calls and that uses it.

        Nothing may be awaited between this and the engine's verbs. They are called for the server itself, with all
        rights, unless the caller sets `actor` and `peer` of the engine: connections have a method for that.
        """
        engine = self.engine
        engine.actor = engine.peer = None
        self.start_tick()
        return engine

    def start_tick(self) -> None:
        """Give the engine the time, unless this tick has begun. For connections, which set `actor` and `peer`."""
        if not self._timed:
            self._set_time()
            self.schedule_tick()

    def _set_time(self) -> None:
        self._timed = True
        now = self.clock()
        self.engine.now = now
        if now >= self.engine.lapse_at:
            self.engine.lapse()

    def begin_read(self) -> bool:
        """As `start_tick`, for a connection that has read something; whether it has to call `end_read` afterwards."""
        if self._ended_by_reads > 0 and not (self._timed or self._due):
            self._ended_by_reads -= 1
            self._due = True  # so that nobody schedules the end
            self._set_time()
            return True
        self._reads += 1
        self.start_tick()
        return False

    def end_read(self) -> None:
        """What was read is handled: end the tick."""
        self._end_tick()

    async def durable(self) -> None:
        """Wait until every change so far is on disk; a NotDurableError if it cannot be written."""
        await self.durability.durable()

    def flush_later(self, writer: Writer) -> None:
        """Flush at the end of the tick."""
        self._dirty.append(writer)
        self.schedule_tick()

    def continue_later(self, writer: Writer) -> None:
        """Continue the input of a connection in a later tick, after others had their turn."""
        self._suspended.append(writer)
        self._continue_wanted = True
        self.schedule_tick()

    def schedule_tick(self) -> None:
        """Have this tick end after what the loop calls now, even if no connection has anything to write."""
        if not self._due:
            self._due = True
            self._call_soon(self._on_tick)

    def close(self) -> None:
        """Call nothing any more."""
        self.timers.close()

    def _run_tick(self) -> None:
        """Everything that was ready has been called: end the tick."""
        if self._reads > 1:
            self._single_reads = self._ended_by_reads = 0
        elif self._reads == 1:
            self._single_reads += 1
            if self._single_reads >= _SINGLE_READS:
                self._ended_by_reads = _ENDED_BY_READS
        self._reads = 0
        self._end_tick()

    def _end_tick(self) -> None:
        engine = self.engine
        if not self._timed:  # this tick has only something to write
            self._timed = True
            engine.now = self.clock()
        self._due = False
        engine.actor = engine.peer = None
        try:
            for call in self.before_flush:
                call()
            self._flush()
            for call in self.after:
                call()
        finally:
            self._timed = False
        if self._continue_wanted and not self._continue_due:
            self._continue_due = True
            self._call_soon(self._on_continue)
        self._set_deadline()

    def _continue(self) -> None:
        """Continue suspended connections in turn, each at most once, and the others in the next tick."""
        self._continue_due = False
        self.begin_tick()
        suspended = self._suspended
        ends = time.monotonic() + _CONTINUE_FOR
        for _ in range(len(suspended)):
            try:
                suspended.popleft().continue_input()
            except Exception:  # the others wait as well
                _log.exception("continuing input failed")
            if time.monotonic() >= ends:
                break
        self._continue_wanted = len(suspended) > 0

    def _flush(self) -> None:
        dirty = self._dirty
        self._dirty = []
        for writer in dirty:
            try:
                writer.flush()
            except Exception:  # the others have something to write as well
                _log.exception("flush failed")

    def _set_deadline(self) -> None:
        """Have the engine called at its next deadline, unless it will be called early enough already."""
        deadline = self.engine.deadline()
        if deadline >= self._deadline - PRECISION:
            return
        if self._deadline_call is not None:
            self._deadline_call.cancel()
        self._deadline = deadline
        delay = min(max(deadline - self.clock(), 0.0), self.longest_wait)
        self._deadline_call = self.timers.call_later(delay, self._run_engine)

    def _run_engine(self) -> None:
        self._deadline_call = None
        self._deadline = NEVER
        self.engine.tick(self.engine.now)
