"""Workers as the engine sees them; every door has a subclass."""

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import HeldJobs
from geartrain.engine.queue import LinkedNode
from geartrain.model import Expiry

if TYPE_CHECKING:
    from geartrain.engine.crew import Crew


# More than a worker runs at once; the bound is for workers that never answer.
_MAX_FORGIVEN: Final = 1000


class Ability:
    """A function that a worker offers, with the timeout of its jobs there."""

    __slots__ = ("on_timeout", "timeout")

    def __init__(self, timeout: float = 0.0, on_timeout: Expiry = Expiry.FAIL) -> None:
        self.timeout = timeout  # seconds; 0: none
        self.on_timeout = on_timeout


@mypyc_attr(allow_interpreted_subclasses=True)
class Worker(LinkedNode):
    """Runs jobs. A door creates one per connected worker and overrides `wake`."""

    __slots__ = (
        "abilities",
        "crew",
        "door",
        "forgiven",
        "idle",
        "inbox",
        "is_distant",
        "leaving_reason",
        "lingers",
        "name",
        "number",
        "peer",
        "running",
        "since",
    )

    def __init__(self, door: str, name: bytes = b"", peer: str = "") -> None:
        super().__init__()
        self.door = door  # protocol
        self.name = name  # as the worker set it; may be empty
        self.peer = peer  # network address
        self.number = 0  # id for operators, given when it first offers a function; negative: not listed
        self.since = 0.0  # when it first offered a function
        self.abilities: dict[bytes, Ability] = {}
        self.running = HeldJobs()
        self.crew: Crew | None = None  # None until it asks for jobs
        self.idle = False  # waits for `wake`
        self.lingers = False  # it is idle, and its request for a job is not answered yet
        self.inbox: list[LiveJob] | None = None  # copies of broadcast jobs that it has yet to claim
        self.is_distant = False  # stands for workers of another server; set before it asks for jobs
        self.forgiven: set[bytes] | None = None  # see `forgive_late`
        self.leaving_reason = "worker disconnected"  # why its jobs are requeued when it is removed

    def wake(self) -> None:
        """There may be a job: call `engine.claim`. The worker is no longer idle. Called from inside engine verbs."""
        raise NotImplementedError

    def revoked(self, job: LiveJob) -> None:
        """A job was taken from the worker because it timed out or was cancelled."""

    def forgive_late(self, handle: bytes) -> None:
        """A job was taken from the worker through no fault of its own: its late answer is not an error."""
        if self.forgiven is None or len(self.forgiven) >= _MAX_FORGIVEN:
            self.forgiven = set()
        self.forgiven.add(handle)

    def is_forgiven(self, handle: bytes) -> bool:
        """Whether to ignore a late answer for this handle; true only once per `forgive_late`."""
        if self.forgiven is None or handle not in self.forgiven:
            return False
        self.forgiven.discard(handle)
        return True


@mypyc_attr(allow_interpreted_subclasses=True)
class BuiltinWorker(Worker):
    """A part of the server that offers a function, which exists only while it has jobs."""

    __slots__ = ()

    def activate(self) -> None:
        """The function has just been created: register for it and become idle."""
        raise NotImplementedError
