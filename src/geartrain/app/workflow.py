"""A workflow that is being built: calls that are submitted together, and may take results of each other.

    async with app.workflow("import") as flow:
        parts = [flow.add(fetch.bind(url)) for url in urls]
        merged = flow.add(merge.bind(parts))
        flow.add(notify.bind(), after=[merged])
    result = await flow.handle.result(merged, timeout=60)

Nothing is submitted before the end of the block, and nothing at all if the block raises.
"""

import dataclasses
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from geartrain.app import envelope, joint_submission
from geartrain.app.call import Call
from geartrain.app.node import Node, WorkflowNode, nodes_in
from geartrain.app.workflow_handle import SyncWorkflowHandle, WorkflowHandle
from geartrain.client import arguments
from geartrain.client.arguments import OnFailure
from geartrain.errors import ClientError

if TYPE_CHECKING:
    from geartrain.app.app_workflows import AppWorkflows

R = TypeVar("R")

# Seconds that a result is kept which is an argument of another job: that may wait for other parents, and be retried.
KEPT_FOR_CHILDREN: Final = 7 * 86_400.0


class Workflow:
    """What `app.workflow(name)` makes: `async with` submits it at the end of the block, and so does `with`.

    >>> from geartrain import App
    >>> from geartrain.testing import InMemory
    >>> app = App("shop")
    >>> @app.task
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> @app.task
    ... def add(numbers: list[int]) -> int:
    ...     return sum(numbers)
    >>> with app, InMemory(app) as memory:
    ...     with app.workflow("sums") as flow:
    ...         total = flow.add(add.bind([flow.add(double.bind(number)) for number in (1, 2, 3)]))
    ...     ran = memory.drain_sync()
    ...     flow.handle_sync.result(total)
    12
    """

    def __init__(self, app: "AppWorkflows", name: str) -> None:
        self.name = name
        self.nodes: list[WorkflowNode[Any]] = []  # in the order in which they were added
        self._app = app
        self._handle: WorkflowHandle | None = None

    def __repr__(self) -> str:
        return f"<Workflow {self.name} of {len(self.nodes)} calls>"

    def add(self, call: Call[R], *, after: Iterable[object] = (), on_failure: OnFailure = "cancel") -> Node[R]:
        """Add a call made by `task.bind`, or by `task.options(...).bind`; returns the node that stands for its result.

        It runs when the nodes among its arguments, and those of `after`, are done. If one of them fails, is cancelled
        or expires, it is cancelled. With `on_failure="run"` it runs when all have ended, and gets a JobFailedError as
        the result of one that failed.
        """
        runs_anyway = arguments.runs_anyway(on_failure)
        if self._handle is not None:
            raise ClientError(f"workflow {self.name!r} is submitted; nothing can be added to it")
        if call.unique:
            raise ValueError(
                f"{call.task.name} has a unique key, which a call in a workflow cannot have: "
                "add task.options(unique=False).bind(...)"
            )
        used = [node for value in (*call.args, *call.kwargs.values()) for node in nodes_in(value)]
        parents = [*used, *map(_checked_node, after)]
        for parent in parents:
            if parent.workflow is not self:
                raise ValueError(f"{parent!r} was not added to workflow {self.name!r}")
        for parent in used:
            self._keep_result(parent, call)
        place = len(self.nodes)
        added = dataclasses.replace(call, place=place, id=envelope.new_id(), meta=dict(call.meta))
        places = sorted({parent.place for parent in parents})
        node = WorkflowNode(self, place, added, places, runs_anyway)
        self.nodes.append(node)
        return cast(R, node)

    @staticmethod
    def _keep_result(parent: WorkflowNode[Any], child: Call[Any]) -> None:
        task = parent.call.task
        if task.codec.name != child.task.codec.name:
            raise ValueError(
                f"{child.task.name} (codec {child.task.codec.name}) cannot take the result of {task.name} "
                f"(codec {task.codec.name}): give both the same codec"
            )
        parent.call.keep_for = max(parent.call.keep_for, KEPT_FOR_CHILDREN)

    @property
    def handle(self) -> WorkflowHandle:
        """The submitted workflow; a ClientError before the end of the block."""
        if self._handle is None:
            raise ClientError(f"workflow {self.name!r} is not submitted before the end of its block")
        return self._handle

    @property
    def handle_sync(self) -> SyncWorkflowHandle:
        """Like `handle`, for programs without an event loop."""
        return SyncWorkflowHandle(self.handle, self._app.background())

    async def submit(self) -> WorkflowHandle:
        """Submit it; the end of the block does this."""
        if not self.nodes:
            raise ValueError(f"workflow {self.name!r} has no calls")
        if self._handle is not None:
            raise ClientError(f"workflow {self.name!r} is submitted already")
        self._handle = await joint_submission.submit(
            self.name, self.nodes, self._app.around_submits, self._app.transport()
        )
        return self._handle

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.submit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._app.wait(self.submit())


def _checked_node(value: object) -> WorkflowNode[Any]:
    if not isinstance(value, WorkflowNode):
        raise TypeError(f"after is a list of nodes, which flow.add returns, not of {type(value).__name__}")
    return value
