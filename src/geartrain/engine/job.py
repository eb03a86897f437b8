"""A job in memory: the plain data of `model.Job`, and its worker, watchers and links."""

from typing import TYPE_CHECKING, NamedTuple

from mypy_extensions import i32, mypyc_attr

from geartrain.model import Job

if TYPE_CHECKING:
    from geartrain.engine.interfaces import Watcher
    from geartrain.engine.worker import Worker


class Progress(NamedTuple):
    """The progress of a running job as its worker reported it."""

    numerator: int
    denominator: int
    seconds_left: int = 0  # the worker's estimate; 0: none
    verbatim: bytes = b""  # the report as the worker sent it, for watchers of the same protocol


@mypyc_attr(acyclic=True)
class LiveJob(Job):
    """A job from submit to end. A finished object is never reused.

    Queues and deadline heaps rely on that: they leave entries of finished jobs in place and remove them later.

    `acyclic`: the garbage collector does not traverse compiled jobs, which saves an eighth of the instructions of
    queueing one. References from and to a job (its neighbours, owner and watchers) are removed when it ends, so
    reference counts suffice. An engine that is discarded with jobs in it leaks them.
    """

    __slots__ = (
        "children",
        "deadline",
        "next",
        "owner",
        "parents_left",
        "previous",
        "progress",
        "started_at",
        "watchers",
    )

    def __init__(
        self,
        id: int,
        handle: bytes,
        function: bytes,
        unique: bytes,
        payload: bytes,
        priority: int,
        background: bool,
        run_at: float,
        submitted_at: float,
        door: str,
    ) -> None:
        super().__init__(id, handle, function, unique, payload, priority, background, run_at, submitted_at, door)
        self.parents_left: i32 = 0  # how many jobs it still waits for
        self.previous: LiveJob | None = None  # neighbours in the linked list of its queue
        self.next: LiveJob | None = None
        self.owner: Worker | None = None  # the worker that runs it; None for a broadcast
        self.watchers: list[Watcher] | None = None  # a watcher that submitted it twice is in it twice
        self.started_at = 0.0
        self.deadline = 0.0  # when its lease expires; 0: no lease
        self.progress: Progress | None = None
        self.children: list[int] | None = None  # ids of the jobs that wait for it

    def __lt__(self, other: "LiveJob") -> bool:
        """Order within a queue: by time, then by submission."""
        return (self.run_at, self.id) < (other.run_at, other.id)

    def __hash__(self) -> int:
        """Explicit, because a compiled class that defines an order has no hash of its own."""
        return self.id
