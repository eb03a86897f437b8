"""A worker, as the engine sees it."""

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import HeldJobs
from geartrain.engine.queue import Node
from geartrain.model import Expiry

if TYPE_CHECKING:
    from geartrain.engine.crew import Crew


# Enough for every job a worker may run at once; the bound is for one that never answers.
_PARDONS_KEPT: Final = 1000


class Ability:
    """A function that a worker offers, and how long its jobs may take there."""

    __slots__ = ("on_timeout", "timeout")

    def __init__(self, timeout: float = 0.0, on_timeout: Expiry = Expiry.FAIL) -> None:
        self.timeout = timeout  # seconds; 0: as long as it takes
        self.on_timeout = on_timeout


@mypyc_attr(allow_interpreted_subclasses=True)
class Worker(Node):
    """Whoever runs jobs. Doors make one per worker and override `wake`."""

    __slots__ = ("abilities", "crew", "door", "forgiven", "idle", "inbox", "name", "number", "peer", "running", "since")

    def __init__(self, door: str, name: bytes = b"", peer: str = "") -> None:
        super().__init__()
        self.door = door
        self.name = name  # what people call it; empty if it did not say
        self.peer = peer  # the address it came from
        self.number = 0  # what the engine calls it, once it offers a function; below 0: it is not to be listed
        self.since = 0.0  # when it first offered a function
        self.abilities: dict[bytes, Ability] = {}
        self.running = HeldJobs()
        self.crew: Crew | None = None  # None until it asks for work with these abilities
        self.idle = False  # waits to be woken
        self.inbox: list[LiveJob] | None = None  # broadcast jobs that it has yet to claim
        # Handles of jobs taken from it whose late answer is no mistake of its own. Doors ask `excuse`.
        self.forgiven: set[bytes] | None = None

    def wake(self) -> None:
        """There may be work: come and claim. It is no longer idle; called from inside engine verbs."""
        raise NotImplementedError

    def revoked(self, job: LiveJob) -> None:
        """A job that it runs was taken from it: its time ran out, or it was cancelled."""

    def forgive_late(self, handle: bytes) -> None:
        """A job was taken from it through no fault of its own: `excuse` will know its handle."""
        if self.forgiven is None or len(self.forgiven) >= _PARDONS_KEPT:
            self.forgiven = set()
        self.forgiven.add(handle)

    def is_forgiven(self, handle: bytes) -> bool:
        """Whether a late answer for this handle is to be passed over in silence; true only once."""
        if self.forgiven is None or handle not in self.forgiven:
            return False
        self.forgiven.discard(handle)
        return True


@mypyc_attr(allow_interpreted_subclasses=True)
class BuiltinWorker(Worker):
    """A part of the server that offers a function itself, which exists only while such a job does."""

    __slots__ = ()

    def activate(self) -> None:
        """Somebody has used the function's name, and it is there now: offer it, and wait to be woken."""
        raise NotImplementedError
