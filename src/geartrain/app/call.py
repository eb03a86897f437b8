"""A call of a task on its way to a server; middleware around submissions sees it and may change it."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from geartrain.app import envelope, node_arguments
from geartrain.client.order import Order
from geartrain.errors import CodecError
from geartrain.model import Priority

if TYPE_CHECKING:
    from geartrain.app.task import Task

R = TypeVar("R")


@dataclasses.dataclass(slots=True)
class Call(Generic[R]):
    """A call that can be submitted: made by `task.bind(...)`, submitted by `app.submit_many`."""

    task: "Task[Any, R]"
    args: Sequence[Any]
    kwargs: dict[str, Any]
    background: bool
    priority: Priority
    unique: bytes
    run_at: float  # epoch seconds; 0: now
    resubmit: bool  # submit it again if the connection breaks
    expires_at: float = 0.0  # epoch seconds; no worker gets it from then on; 0: it does not expire
    keep_for: float = 0.0  # seconds that the server keeps the result at least; 0: as its settings say
    partition: bytes = b""  # jobs of different partitions of a task take turns; empty: none
    place: int | None = None  # in its workflow, from 0; None: it belongs to none
    id: str = dataclasses.field(default_factory=envelope.new_id)
    meta: dict[str, Any] = dataclasses.field(default_factory=dict)  # sent to the worker with the call

    def order(self) -> Order:
        """The call as clients submit it."""
        return Order(
            function=self.task.function_name,
            payload=self.payload(),
            background=self.background,
            priority=self.priority,
            unique=self.unique,
            run_at=self.run_at,
            expires_at=self.expires_at,
            keep_for=self.keep_for,
            partition=self.partition,
        )

    def payload(self) -> bytes:
        """The envelope, encoded with the task's codec; a CodecError names the argument that cannot be encoded."""
        content = envelope.Envelope(
            v=envelope.VERSION,
            args=list(self.args),
            kwargs=self.kwargs,
            id=self.id,
            wait=not self.background,
            meta=self.meta,
            place=self.place,
        )
        if self.place is not None:
            content.args, content.kwargs, content.results = node_arguments.take_out(self.args, self.kwargs)
            content.v = envelope.WITH_RESULTS if content.results else envelope.VERSION
        try:
            return self.task.codec.encode(content)
        except CodecError as error:
            self._explain(error)
            raise

    def _explain(self, error: CodecError) -> None:
        """Raise an error that names the argument, if it is one of them that cannot be encoded."""
        args, kwargs = self.args, self.kwargs
        if self.place is not None:
            args, kwargs, _ = node_arguments.take_out(args, kwargs)
        for name, value in self.task.parameters.named(args, kwargs).items():
            try:
                self.task.codec.encode(value)
            except CodecError as cause:
                raise CodecError(f"argument {name!r} of {self.task.name}: {cause}") from error
