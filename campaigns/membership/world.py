"""Simulated time: events in the order of their times, machines with clocks of their own, and an event loop on them."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

EPOCH: Final = 1_800_000_000.0  # the wall clock at the beginning
_SHORTEST: Final = 0.0002  # seconds for which a message is on its way
_LONGEST: Final = 0.01
_SLOW_SHARE: Final = 0.03  # of messages, or of threads that do not get the processor


class FaultError(Exception):
    """A rule was broken; the text says which."""


class World:
    """What happens next. Everything random comes from one seed."""

    def __init__(self, seed: str) -> None:
        self.now = 0.0  # true seconds; no machine knows them
        self.chance = random.Random(seed)
        self.steps = 0
        self.slowest = _LONGEST  # seconds that a slow message takes
        self.fault = ""  # the first rule that was broken
        self._events: list[tuple[float, int, Callable[..., object], Machine | None, tuple[Any, ...]]] = []
        self._serial = 0
        self._random = self.chance.random

    def after(
        self, seconds: float, call: Callable[..., object], machine: "Machine | None" = None, *args: object
    ) -> None:
        """Call it then; with a machine, only while that one is up, and not before it goes on."""
        self.at(self.now + seconds, call, machine, *args)

    def at(self, when: float, call: Callable[..., object], machine: "Machine | None" = None, *args: object) -> None:
        """The same at a time: what is due at the same time happens in the order of the calls."""
        self._serial = serial = self._serial + 1
        heappush(self._events, (when, serial, call, machine, args))

    def delay(self) -> float:
        """How long a message takes."""
        draw = self._random()
        if draw < _SLOW_SHARE:
            return self.slowest * draw / _SLOW_SHARE
        return _SHORTEST + (_LONGEST - _SHORTEST) * draw * draw * draw

    def run(self, until: float) -> None:
        """Let everything happen that happens before this time."""
        events = self._events
        while events and events[0][0] <= until:
            self.now, _, call, machine, args = heappop(events)
            if machine is not None:
                if not machine.is_up:
                    continue
                if machine.paused_until > self.now:
                    self.at(machine.paused_until, call, machine, *args)
                    continue
            self.steps += 1
            call(*args)
            if self.fault:
                raise FaultError(self.fault)
        self.now = until

    def fail(self, text: str) -> None:
        """A rule was broken. The step goes on, because some of the code that runs now handles every exception."""
        self.fault = self.fault or f"at {self.now:.3f} s: {text}"


class Site:
    """Where machines stand: what is cut off is cut off together."""

    is_cut_off = False  # from the database


class Machine:
    """One process on a machine: its clocks, and whether it runs."""

    def __init__(self, world: World, rate: float, wall_offset: float, site: Site) -> None:
        self.world = world
        self.site = site
        self.is_up = True
        self.paused_until = 0.0
        self.rate = rate  # of its clocks: seconds per true second
        self.wall_offset = wall_offset
        self.resumed_at = -1.0  # after it was suspended, by its monotonic clock
        self._since = world.now
        self._monotonic = world.chance.uniform(0.0, 1e6)

    def monotonic(self) -> float:
        seconds = self.world.now - self._since
        return self._monotonic + seconds * self.rate if seconds > 0.0 else self._monotonic

    def wall(self) -> float:
        return self.monotonic() + self.wall_offset

    def pause(self, seconds: float) -> None:
        """Run nothing for a while. The clocks go on."""
        self.paused_until = max(self.paused_until, self.world.now + seconds)

    def suspend(self, seconds: float) -> None:
        """Run nothing for a while, as a virtual machine: the monotonic clock stands still, the wall clock is set."""
        self._monotonic = self.monotonic()
        self._since = self.world.now + seconds
        self.resumed_at = self._monotonic
        self.wall_offset += seconds
        self.pause(seconds)


class Call:
    """A call at a time that may be cancelled: what asyncio calls a handle."""

    __slots__ = ("args", "callback", "is_cancelled", "when")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], when: float) -> None:
        self.callback = callback
        self.args = args
        self.when = when
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class SimulatedLoop:
    """As much of an event loop as a server without connections needs. Its time is that of its machine.

    Nothing that it calls has variables of a context, so there are none.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._world = machine.world
        self._ready: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._is_running = False
        self._last_arrival = 0.0  # of a call from a thread: they keep their order
        self.is_closed_for_good = False
        self.time = machine.monotonic
        self.as_loop = cast(asyncio.AbstractEventLoop, self)  # for those who ask for a whole one

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self.is_closed_for_good

    def close(self) -> None:
        """Call nothing any more: the process has ended."""
        self.is_closed_for_good = True
        self._ready.clear()

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self.as_loop)

    def create_task(self, coro: Coroutine[Any, Any, T], **_: object) -> "asyncio.Task[T]":
        task = asyncio.Task(coro, loop=self.as_loop)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it may end with its process
        return task

    def call_soon(self, callback: Callable[..., object], *args: Any, context: object = None) -> None:
        """Nobody cancels such a call."""
        self._ready.append((callback, args))
        if not self._is_running and len(self._ready) == 1:
            self._world.after(0.0, self.run_ready, self._machine)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:
        """From a thread, whose machine may stop before the loop comes to it."""
        world = self._world
        arrival = world.now + world.delay()
        if arrival < self._last_arrival:
            arrival = self._last_arrival
        self._last_arrival = arrival
        world.at(arrival, self.run, self._machine, callback, *args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: object = None) -> Call:
        return self.call_at(self.time() + delay, callback, *args)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: object = None) -> Call:
        call = Call(callback, args, when)
        self._await_time(call)
        return call

    def _await_time(self, call: Call) -> None:
        seconds = call.when - self.time()
        self._world.after(seconds / self._machine.rate if seconds > 0.0 else 0.0, self._come, self._machine, call)

    def _come(self, call: Call) -> None:
        """The time of a call has come."""
        if call.is_cancelled:
            return
        if self.time() < call.when - 1e-6:  # the clock stood still meanwhile
            self._await_time(call)
            return
        self.run(call.callback, *call.args)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        """Call it when a thread and the store come to it."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:
                self.call_soon_threadsafe(_fail, future, error)
            else:
                self.call_soon_threadsafe(_succeed, future, result)

        self._world.after(self._world.delay(), work, self._machine)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._world.fail(f"exception in the event loop: {context}")

    def run(self, call: Callable[..., object], *args: Any) -> None:
        """Call it in the loop, and then all that is ready."""
        if self.is_closed_for_good:
            return
        self._is_running = True
        asyncio._set_running_loop(self.as_loop)
        try:
            call(*args)
            ready = self._ready
            while ready:
                callback, its_args = ready.popleft()
                callback(*its_args)
        finally:
            asyncio._set_running_loop(None)
            self._is_running = False

    def run_ready(self) -> None:
        if self._ready:
            self.run(_nothing)


def _nothing() -> None:
    pass


def _fail(future: "asyncio.Future[T]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _succeed(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)
