"""One call of a task on its way to a server; what middleware around submissions sees and may change."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from geartrain.app import envelope
from geartrain.model import Priority

if TYPE_CHECKING:
    from geartrain.app.task import Task

R = TypeVar("R")


@dataclasses.dataclass(slots=True)
class Call(Generic[R]):
    """A call that can be submitted: made by `task.bind(...)`, sent by `app.submit_many`."""

    task: "Task[Any, R]"
    args: Sequence[Any]
    kwargs: dict[str, Any]
    background: bool
    priority: Priority
    unique: bytes
    run_at: float  # epoch seconds; 0: now
    resubmit: bool  # it may be submitted again when the connection breaks
    id: str = dataclasses.field(default_factory=envelope.new_id)
    meta: dict[str, Any] = dataclasses.field(default_factory=dict)  # travels with the call to its worker

    def payload(self, tried: int = 0) -> bytes:
        """The envelope, written in the task's codec."""
        return self.task.codec.encode(
            envelope.Envelope(
                envelope.VERSION, list(self.args), self.kwargs, self.id, not self.background, tried, self.meta
            )
        )
