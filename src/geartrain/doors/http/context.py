"""What every handler works with: the engine, the steward, and what the door keeps."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from geartrain.doors.door import Limits
from geartrain.doors.http import events
from geartrain.doors.http.auth import Guard
from geartrain.doors.http.events import Live
from geartrain.doors.http.options import Options
from geartrain.doors.http.worker_api import Workers
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop

if TYPE_CHECKING:
    from geartrain.admin.service import Admin


class HttpContext:
    """One per door."""

    def __init__(self, tick_loop: TickLoop, limits: Limits, options: Options, admin: "Admin", guard: Guard) -> None:
        self.tick_loop = tick_loop
        self.engine = tick_loop.engine
        self.limits = limits
        self.options = options
        self.admin = admin
        self.guard = guard
        self.ending: asyncio.Future[None] = tick_loop.loop.create_future()  # done when the door closes
        self.listeners = 0  # streams that are open
        self.live = Live(self)
        self.workers = Workers(self)

    def close(self) -> None:
        """The door closes: streams end, those who wait for something get an answer, workers are gone."""
        if not self.ending.done():
            self.ending.set_result(None)
            self.workers.close()

    def now(self) -> Engine:
        """The engine, told what time it is; nothing may be awaited between this and the verbs."""
        return self.tick_loop.begin_tick()

    async def durable(self) -> None:
        """Return when everything that was changed so far is on disk; refuse if it cannot be brought there."""
        await self.tick_loop.durable()

    async def wait(self, future: "asyncio.Future[Any]", receive: events.Receive, seconds: float) -> bool:
        """Wait for a future, but no longer than that, nor than whoever asks and the door are there; whether it came."""
        if future.done() or not seconds:
            return future.done()
        gone = asyncio.ensure_future(events.hung_up(receive))
        try:
            await asyncio.wait({future, gone, self.ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return future.done() and not gone.done()
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone
