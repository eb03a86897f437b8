"""Handles of submitted workflows: results of their nodes, state and progress, cancelling and retrying."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast

from geartrain.app.handle import SyncTaskHandle, TaskHandle
from geartrain.app.node import Node, WorkflowNode
from geartrain.app.transport import SubmittedWorkflow
from geartrain.client.loop_thread import LoopThread
from geartrain.errors import JobTimeoutError

T = TypeVar("T")

_FETCHES: Final = 20  # results of a list of nodes that are waited for at a time


class WorkflowHandle:
    """A submitted workflow: `flow.handle` after its block, or `app.workflow_handle(id)` in another program."""

    __slots__ = ("_members", "_planned", "_workflow", "name")

    def __init__(
        self, workflow: SubmittedWorkflow, name: str, planned: object, members: Sequence[TaskHandle[Any]] = ()
    ) -> None:
        self.name = name  # empty: not known
        self._workflow = workflow
        self._planned = planned  # what its nodes were added to
        self._members = members

    def __repr__(self) -> str:
        return f"<WorkflowHandle {self.name} {self.handle!r}>"

    @property
    def handle(self) -> str:
        """The server's handle of the workflow, with which `app.workflow_handle` finds it again."""
        return self._workflow.handle.decode("utf-8", "replace")

    @property
    def server(self) -> str:
        """The URL of the server that has it."""
        return self._workflow.server

    async def result(self, node: Node[T], timeout: float | None = None) -> T:
        """Wait for the result of a node, at most `timeout` seconds; of a list or tuple of nodes, for all results.

        JobFailedError if it has failed or was cancelled, JobTimeoutError after the timeout.
        """
        planned: object = node
        if not isinstance(planned, list | tuple):
            return await self.member(node).result(timeout)
        slots = asyncio.Semaphore(_FETCHES)

        async def fetch(each: object) -> Any:
            async with slots:
                return await self.member(each).result()

        try:
            async with asyncio.timeout(timeout):
                results = await asyncio.gather(*map(fetch, planned))
        except TimeoutError:
            raise JobTimeoutError(f"{self!r}: not all results are there within {timeout:g} seconds") from None
        return cast(T, results if isinstance(planned, list) else tuple(results))

    def member(self, node: Node[T]) -> TaskHandle[T]:
        """The handle of a node's job."""
        planned: object = node
        if not isinstance(planned, WorkflowNode):
            raise TypeError(f"{planned!r} is not a node, which flow.add returns")
        if planned.workflow is not self._planned:
            raise ValueError(f"{planned!r} was not added to {self!r}")
        return self._members[planned.place]

    def member_at(self, place: int) -> TaskHandle[Any]:
        """The handle of the job at a place, from 0."""
        return self._members[place]

    async def wait(self, timeout: float | None = None) -> str:
        """Wait until all jobs have ended, and return the state: done, failed or cancelled."""
        return await self._workflow.wait(timeout)

    async def state(self) -> str:
        """running, done, failed or cancelled."""
        return (await self._workflow.progress()).state

    async def reason(self) -> str:
        """Why it failed: the first job that did; empty if none has."""
        return (await self._workflow.progress()).reason

    async def progress(self) -> Mapping[str, int]:
        """How many of its jobs are in which state, such as {"done": 3, "running": 1, "blocked": 2}."""
        return (await self._workflow.progress()).states

    async def cancel(self) -> bool:
        """Cancel every job that has not ended; False if all have."""
        return await self._workflow.cancel()

    async def retry(self) -> bool:
        """Run again what failed, and what was cancelled because of it; False if the workflow has not failed."""
        return await self._workflow.retry()


class SyncWorkflowHandle:
    """A `WorkflowHandle` for programs without an event loop."""

    __slots__ = ("_handle", "_loop")

    def __init__(self, handle: WorkflowHandle, loop: LoopThread) -> None:
        self._handle = handle
        self._loop = loop

    def __repr__(self) -> str:
        return f"<Sync{repr(self._handle)[1:]}"

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def handle(self) -> str:
        """The server's handle of the workflow."""
        return self._handle.handle

    @property
    def server(self) -> str:
        """The URL of the server that has it."""
        return self._handle.server

    def result(self, node: Node[T], timeout: float | None = None) -> T:
        """As `WorkflowHandle.result`."""
        return self._loop.call(self._handle.result(node, timeout))

    def member(self, node: Node[T]) -> SyncTaskHandle[T]:
        """As `WorkflowHandle.member`."""
        return SyncTaskHandle(self._handle.member(node), self._loop)

    def wait(self, timeout: float | None = None) -> str:
        """As `WorkflowHandle.wait`."""
        return self._loop.call(self._handle.wait(timeout))

    def state(self) -> str:
        """As `WorkflowHandle.state`."""
        return self._loop.call(self._handle.state())

    def reason(self) -> str:
        """As `WorkflowHandle.reason`."""
        return self._loop.call(self._handle.reason())

    def progress(self) -> Mapping[str, int]:
        """As `WorkflowHandle.progress`."""
        return self._loop.call(self._handle.progress())

    def cancel(self) -> bool:
        """As `WorkflowHandle.cancel`."""
        return self._loop.call(self._handle.cancel())

    def retry(self) -> bool:
        """As `WorkflowHandle.retry`."""
        return self._loop.call(self._handle.retry())


class OutputHandle(Generic[T]):
    """A submitted workflow with one result: what `app.group`, `app.chain` and `app.chord` return."""

    __slots__ = ("_output", "workflow")

    def __init__(self, workflow: WorkflowHandle, output: Node[T]) -> None:
        self.workflow = workflow  # its state and progress; cancels and retries it
        self._output = output

    def __repr__(self) -> str:
        return f"<OutputHandle {self.workflow.name} {self.workflow.handle!r}>"

    async def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most `timeout` seconds; as `WorkflowHandle.result`."""
        return await self.workflow.result(self._output, timeout)


class SyncOutputHandle(Generic[T]):
    """An `OutputHandle` for programs without an event loop."""

    __slots__ = ("_handle", "_loop", "workflow")

    def __init__(self, handle: OutputHandle[T], loop: LoopThread) -> None:
        self.workflow = SyncWorkflowHandle(handle.workflow, loop)
        self._handle = handle
        self._loop = loop

    def __repr__(self) -> str:
        return f"<Sync{repr(self._handle)[1:]}"

    def result(self, timeout: float | None = None) -> T:
        """As `OutputHandle.result`."""
        return self._loop.call(self._handle.result(timeout))
