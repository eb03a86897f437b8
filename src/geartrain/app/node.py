"""A node: a call in a workflow, which stands for its result as an argument of other calls of the workflow.

For type checkers a node of a task that returns `bytes` is `bytes`, as `Depends(get_db)` is what `get_db` makes. So a
call with nodes is checked like any other call: `merge.bind(parts)` takes nodes of tasks that return what `merge` needs,
in a list too. The price: checkers do not see that it has no value before its job has run. Whoever uses it as one gets
an AttributeError or a TypeError that says so.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from geartrain.app.call import Call

T = TypeVar("T")


class WorkflowNode(Generic[T]):
    """What `flow.add` returns: a call, and the places of the nodes that it waits for."""

    __slots__ = ("after", "call", "place", "runs_anyway", "workflow")

    def __init__(
        self, workflow: object, place: int, call: "Call[T]", after: Sequence[int] = (), runs_anyway: bool = False
    ) -> None:
        self.workflow = workflow  # where it was added
        self.place = place  # there, from 0
        self.call = call
        self.after = after
        self.runs_anyway = runs_anyway  # although one that it waits for failed; otherwise it is cancelled

    def __repr__(self) -> str:
        return f"<Node {self.place} {self.call.task.name}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} has no {name!r}: {_NO_VALUE}")

    def __format__(self, spec: str) -> NoReturn:
        raise TypeError(f"{self!r} has no text: {_NO_VALUE}")

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is neither true nor false: {_NO_VALUE}")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be sent: {UNSENDABLE}")


Node = Annotated[T, WorkflowNode]

_NO_VALUE = "a node stands for a result that is not there before its job has run"
UNSENDABLE = "a node is an argument of a call in the same workflow, or an element of a list or tuple that is one"


def nodes_in(value: Any) -> list[WorkflowNode[Any]]:
    """The nodes in an argument: itself, or elements of a list or tuple."""
    if isinstance(value, WorkflowNode):
        return [value]
    return (
        [element for element in value if isinstance(element, WorkflowNode)] if isinstance(value, list | tuple) else []
    )
