"""Heartbeats of a worker's connection: sent while it has jobs, so that its server knows that it has not stopped."""

import asyncio
from collections.abc import Callable
from typing import Final

# How often a worker renews a lease within the time that it lasts.
HEARTBEATS_PER_LEASE: Final = 3


class Heartbeat:
    """One timer, which runs only while there are jobs. Until the server has said how long a lease is, there is none."""

    __slots__ = ("_interval", "_is_busy", "_send", "_timer")

    def __init__(self, send: Callable[[], None], is_busy: Callable[[], bool]) -> None:
        self._send = send
        self._is_busy = is_busy
        self._interval = 0.0  # 0: the server wants no heartbeats
        self._timer: asyncio.TimerHandle | None = None

    def set_lease(self, seconds: float) -> None:
        """The worker may be silent for so long while it has jobs; 0: for ever."""
        self._interval = seconds / HEARTBEATS_PER_LEASE

    def begin(self) -> None:
        """There is a job."""
        if self._timer is None and self._interval:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._beat)

    def stop(self) -> None:
        """The connection has ended."""
        self._interval = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._timer = None
        if self._is_busy():
            self._send()
            self.begin()
