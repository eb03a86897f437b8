"""The submission of a workflow: one request for all calls, with the app's middleware around each of them.

Middleware around a submission calls `proceed` and gets the handle of its call. All calls must be there before the
request can be sent, so each of them waits in `proceed` for the others.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from geartrain.app import middleware
from geartrain.app.call import Call
from geartrain.app.handle import TaskHandle
from geartrain.app.middleware import Around
from geartrain.app.node import WorkflowNode
from geartrain.app.transport import SubmittedWorkflow, Transport
from geartrain.app.workflow_handle import WorkflowHandle
from geartrain.errors import ClientError


async def submit(
    name: str, nodes: Sequence[WorkflowNode[Any]], around: Sequence[Around[Call[Any]]], transport: Transport
) -> WorkflowHandle:
    """Submit a workflow with middleware around each of its calls."""
    if not around:
        return _handle(name, nodes, await transport.submit_workflow(name, nodes))
    return await _JointSubmission(name, nodes, transport).run(around)


def _handle(name: str, nodes: Sequence[WorkflowNode[Any]], submitted: SubmittedWorkflow) -> WorkflowHandle:
    members = [
        TaskHandle(job, node.call.task.name, node.call.task.read_result, node.call)
        for node, job in zip(nodes, submitted.jobs, strict=True)
    ]
    return WorkflowHandle(submitted, name, nodes[0].workflow, members)


class _JointSubmission:
    """One submission, for which all calls wait."""

    def __init__(self, name: str, nodes: Sequence[WorkflowNode[Any]], transport: Transport) -> None:
        self._name = name
        self._nodes = nodes
        self._transport = transport
        self._waiting = 0  # calls that have arrived
        self._submitted: asyncio.Future[WorkflowHandle] = asyncio.get_running_loop().create_future()

    async def run(self, around: Sequence[Around[Call[Any]]]) -> WorkflowHandle:
        """Submit when every call has passed its middleware; raise what middleware or the server raises."""
        calls = [asyncio.create_task(self._call(node, around)) for node in self._nodes]
        try:
            await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        return await self._submitted

    async def _call(self, node: WorkflowNode[Any], around: Sequence[Around[Call[Any]]]) -> None:
        arrived = False

        async def proceed() -> TaskHandle[Any]:
            nonlocal arrived
            if not arrived:
                arrived = True
                self._waiting += 1
                if self._waiting == len(self._nodes):
                    await self._submit()
            return (await asyncio.shield(self._submitted)).member_at(node.place)

        await middleware.chain(around, node.call, proceed)()
        if not arrived:
            raise ClientError(
                f"workflow {self._name!r} was not submitted: middleware did not proceed with {node.call.task.name}"
            )

    async def _submit(self) -> None:
        try:
            submitted = await self._transport.submit_workflow(self._name, self._nodes)
            self._submitted.set_result(_handle(self._name, self._nodes, submitted))
        except Exception as error:
            self._submitted.set_exception(error)
