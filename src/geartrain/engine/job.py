"""A job while the engine has it: the plain record, and who has to do with it right now."""

from typing import TYPE_CHECKING, NamedTuple

from mypy_extensions import mypyc_attr

from geartrain.model import Job

if TYPE_CHECKING:
    from geartrain.engine.interfaces import Watcher
    from geartrain.engine.worker import Worker


class Progress(NamedTuple):
    """How far a running job is, as its worker said it."""

    numerator: int
    denominator: int
    seconds_left: int = 0  # 0: the worker did not say
    verbatim: bytes = b""  # the worker's own words, for a watcher that speaks its protocol


@mypyc_attr(acyclic=True)
class LiveJob(Job):
    """One object per job from submit to end; a finished object is never used again.

    So at most one place in a lane's heap or on an agenda belongs to a live object, and places of finished objects can
    be left behind and swept later.

    `acyclic`: once compiled, the garbage collector does not look at jobs, which is an eighth of the instructions of
    queueing one. What a job points at and what points at the job (its neighbours, owner and watchers) is untied when
    the job ends, so reference counts are enough; an engine that is dropped with jobs in it keeps their memory.
    """

    __slots__ = ("ahead", "behind", "code", "deadline", "owner", "progress", "started_at", "watchers")

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
        self.ahead: LiveJob | None = None  # its neighbours in the line of its lane
        self.behind: LiveJob | None = None
        self.owner: Worker | None = None  # the one worker that runs it
        self.watchers: list[Watcher] | None = None  # who hears of it; one that asked twice is in it twice
        self.started_at = 0.0
        self.deadline = 0.0  # when its lease runs out; 0: no lease
        self.progress: Progress | None = None
        self.code = 0  # what its worker called the failure, 1 to 255; 0 while it has not failed

    def __lt__(self, other: "LiveJob") -> bool:
        """Whether it comes first in a lane: by time, then in the order of submission."""
        return (self.run_at, self.id) < (other.run_at, other.id)

    def __hash__(self) -> int:
        """Said aloud: a compiled class that has an order has no hash by itself."""
        return self.id
