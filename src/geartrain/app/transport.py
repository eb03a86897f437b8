"""The seam between an app and whoever carries its calls: a server, or memory in users' own tests."""

import abc
from collections.abc import AsyncIterator, Iterable
from typing import Any

from geartrain.app.call import Call
from geartrain.client.job_events import Event
from geartrain.client.order import Status


class Remote(abc.ABC):
    """A job that was submitted."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def handle(self) -> bytes:
        """As the server calls it; empty where the protocol has no handles."""

    @abc.abstractmethod
    async def result(self, timeout: float | None) -> bytes:
        """Wait for the end; JobFailedError, JobTimeoutError, or UnsupportedError where it cannot be had."""

    @abc.abstractmethod
    async def status(self) -> Status:
        """What the server knows of it at this moment."""

    @abc.abstractmethod
    async def cancel(self) -> bool:
        """End it; whether there was something to end."""

    @abc.abstractmethod
    def events(self) -> AsyncIterator[Event]:
        """What is heard of a foreground job until its end."""


class Transport(abc.ABC):
    """Takes calls. One for each event loop that an app is used on."""

    @abc.abstractmethod
    async def submit(self, call: Call[Any]) -> Remote:
        """Hand over one call; it returns when the server has it, durably if it is a background job."""

    @abc.abstractmethod
    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[Remote]:
        """The same for many at once, without waiting for each."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Hang up."""
