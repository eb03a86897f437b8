"""The interface between an app and what carries its calls: servers, or memory in users' own tests."""

import abc
from collections.abc import AsyncIterator, Iterable
from typing import Any

from geartrain.app.call import Call
from geartrain.client.job_events import Event
from geartrain.client.order import Status


class SubmittedJob(abc.ABC):
    """The job of a call that was submitted."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def handle(self) -> bytes:
        """The server's handle; empty if the protocol has none."""

    @property
    @abc.abstractmethod
    def server(self) -> str:
        """The URL of the server that has it."""

    @abc.abstractmethod
    async def result(self, timeout: float | None) -> bytes:
        """Wait for the result; JobFailedError, JobTimeoutError, or UnsupportedError if the protocol cannot ask."""

    @abc.abstractmethod
    async def status(self) -> Status:
        """The job's current status on the server."""

    @abc.abstractmethod
    async def log(self) -> str:
        """The log that is kept with the job; UnsupportedError if the server keeps none."""

    @abc.abstractmethod
    async def cancel(self) -> bool:
        """Cancel the job; False if it was finished or unknown."""

    @abc.abstractmethod
    def events(self) -> AsyncIterator[Event]:
        """The events of a job until its end."""


class Transport(abc.ABC):
    """Submits calls. Each event loop that uses an app has one of its own."""

    @abc.abstractmethod
    async def submit(self, call: Call[Any]) -> SubmittedJob:
        """Submit a call; returns when the server has it, on disk if it is a background job."""

    @abc.abstractmethod
    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[SubmittedJob]:
        """Submit many calls without waiting for each one."""

    @abc.abstractmethod
    def job(self, handle: bytes, function: bytes, server: str) -> SubmittedJob:
        """A job that was submitted earlier; an empty function or server is not known."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Close all connections."""
