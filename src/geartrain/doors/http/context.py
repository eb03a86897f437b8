"""What handlers of requests need: the engine and its tick, admin, and the state of the door."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from geartrain.doors.door import Limits
from geartrain.doors.http import events
from geartrain.doors.http.auth import Guard
from geartrain.doors.http.door import Options
from geartrain.doors.http.events import EventStreamCount, ServerEvents
from geartrain.doors.http.proxies import TrustedProxies
from geartrain.doors.http.worker import WorkerRegistry
from geartrain.runtime.tick import TickLoop

if TYPE_CHECKING:
    from geartrain.admin.service import Admin


class HttpContext:
    """One per door."""

    def __init__(self, tick_loop: TickLoop, limits: Limits, options: Options, admin: "Admin", guard: Guard) -> None:
        self.tick_loop = tick_loop
        self.limits = limits
        self.options = options
        self.admin = admin
        self.guard = guard
        self.closing: asyncio.Future[None] = tick_loop.loop.create_future()  # done when the door closes
        self.proxies = TrustedProxies(options.trusted_proxies)
        self.streams = EventStreamCount(options.listeners, options.listeners_per_client)
        self.server_events = ServerEvents(self)
        self.workers = WorkerRegistry(tick_loop, options.worker_lease)

    def close(self) -> None:
        """End streams and requests that wait, and remove the workers: the door closes."""
        if not self.closing.done():
            self.closing.set_result(None)
            self.workers.close()

    async def wait(self, future: "asyncio.Future[Any]", receive: events.Receive, seconds: float | None = None) -> bool:
        """Wait for a future until the time is up, the client disconnects or the door closes; whether it is done."""
        if future.done() or seconds == 0:
            return future.done()
        disconnected = asyncio.ensure_future(events.disconnect(receive))
        try:
            await asyncio.wait(
                {future, disconnected, self.closing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return future.done() and not disconnected.done()
        finally:
            disconnected.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await disconnected
