"""The interface between an app and what carries its calls: servers, or memory in users' own tests."""

import abc
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from geartrain.app.call import Call
from geartrain.app.node import WorkflowNode
from geartrain.client.job_events import Event
from geartrain.client.order import Status
from geartrain.client.workflow import WorkflowProgress


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


class SubmittedWorkflow(abc.ABC):
    """A workflow that was submitted."""

    @property
    @abc.abstractmethod
    def handle(self) -> bytes:
        """The server's handle of the workflow."""

    @property
    @abc.abstractmethod
    def server(self) -> str:
        """The URL of the server that has it."""

    @property
    @abc.abstractmethod
    def jobs(self) -> Sequence[SubmittedJob]:
        """Its members, in the order of their submission; empty if another program submitted them."""

    @abc.abstractmethod
    async def wait(self, timeout: float | None) -> str:
        """Wait until all members have ended, and return the state: done, failed or cancelled; or JobTimeoutError."""

    @abc.abstractmethod
    async def progress(self) -> WorkflowProgress:
        """The current state of the workflow, and how many members are in which state."""

    @abc.abstractmethod
    async def cancel(self) -> bool:
        """Cancel all members that have not ended; False if all have."""

    @abc.abstractmethod
    async def retry(self) -> bool:
        """Run again what failed, and what was cancelled because of it; False if the workflow has not failed."""


class Transport(abc.ABC):
    """Submits calls. Each event loop that uses an app has one of its own."""

    @abc.abstractmethod
    async def submit(self, call: Call[Any]) -> SubmittedJob:
        """Submit a call; returns when the server has it, on disk if it is a background job."""

    @abc.abstractmethod
    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[SubmittedJob]:
        """Submit many calls without waiting for each one."""

    @abc.abstractmethod
    async def submit_workflow(self, name: str, nodes: Sequence[WorkflowNode[Any]]) -> SubmittedWorkflow:
        """Submit the calls of a workflow, all of them or none; returns when the server has them on disk."""

    @abc.abstractmethod
    def workflow(self, handle: bytes, server: str) -> SubmittedWorkflow:
        """A workflow that was submitted earlier; an empty server is not known."""

    @abc.abstractmethod
    def job(self, handle: bytes, function: bytes, server: str) -> SubmittedJob:
        """A job that was submitted earlier; an empty function or server is not known."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Close all connections."""
