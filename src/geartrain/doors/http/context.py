"""What handlers of requests need: the engine and its tick, admin, and the state of the door."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from geartrain.doors.door import Limits
from geartrain.doors.http.auth import Guard
from geartrain.doors.http.door import Options
from geartrain.doors.http.events import EventStreamCount, ServerEvents
from geartrain.doors.http.proxies import TrustedProxies
from geartrain.doors.http.request import Request
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
        self.on_close: set[Callable[[], object]] = set()  # of requests that wait
        self.proxies = TrustedProxies(options.trusted_proxies)
        self.streams = EventStreamCount(options.listeners, options.listeners_per_client)
        self.server_events = ServerEvents(self)
        self.workers = WorkerRegistry(tick_loop, options.worker_lease)

    def close(self) -> None:
        """End streams and requests that wait, and remove the workers: the door closes."""
        if not self.closing.done():
            self.closing.set_result(None)
            for call in list(self.on_close):
                call()
            self.workers.close()

    async def wait(self, future: "asyncio.Future[Any]", request: Request, seconds: float | None = None) -> bool:
        """Wait for a future until the time is up, the client disconnects or the door closes; whether it is done."""
        if future.done() or seconds == 0 or request.disconnected or self.closing.done():
            return future.done() and not request.disconnected
        ended: asyncio.Future[None] = self.tick_loop.loop.create_future()

        def end(_: object = None) -> None:
            if not ended.done():
                ended.set_result(None)

        future.add_done_callback(end)
        request.on_disconnect = end
        self.on_close.add(end)
        timer = self.tick_loop.timers.call_later(seconds, end) if seconds is not None else None
        try:
            await ended
        finally:
            future.remove_done_callback(end)
            request.on_disconnect = None
            self.on_close.discard(end)
            if timer is not None:
                timer.cancel()
        return future.done() and not request.disconnected
