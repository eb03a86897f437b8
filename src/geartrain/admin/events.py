"""What happens to jobs, told to whoever attends."""

from collections.abc import Callable, Container, Iterable

from geartrain import jsonbytes
from geartrain.admin.verbs import EVENTS
from geartrain.admin.views import STATES, JobEvent
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Observer
from geartrain.engine.job import LiveJob, Progress
from geartrain.errors import AdminError

Listener = Callable[[JobEvent], None]


def event_names(names: Iterable[str]) -> frozenset[str]:
    """The names as a set; an AdminError for one that no event has, which would be waited for without end."""
    for name in names:
        if name not in EVENTS:
            raise AdminError("bad-request", f"unknown event {name!r}; the events are {', '.join(EVENTS)}")
    return frozenset(names)


class Events(Observer):
    """In the engine's audience only while it has listeners of its own."""

    def __init__(self, engine: Engine, hidden: Container[bytes]) -> None:
        self._engine = engine
        self._hidden = hidden  # functions that nobody is to hear of
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """One more; it is called from inside engine verbs, so it only takes a note."""
        if not self._listeners:
            self._engine.subscribe(self)
        self._listeners = [*self._listeners, listener]

    def unsubscribe(self, listener: Listener) -> None:
        """One less."""
        if not self._listeners:
            return
        self._listeners = [other for other in self._listeners if other != listener]
        if not self._listeners:
            self._engine.unsubscribe(self)

    def created(self, job: LiveJob) -> None:
        self._tell("submitted", job)

    def started(self, job: LiveJob) -> None:
        self._tell("started", job)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._tell("progress", job)

    def requeued(self, job: LiveJob, why: str) -> None:
        self._tell("requeued", job, why)

    def rescheduled(self, job: LiveJob, why: str) -> None:
        self._tell("scheduled", job, why)

    def finished(self, job: LiveJob, result: bytes) -> None:
        self._tell(STATES[job.state], job, job.reason)

    def _tell(self, what: str, job: LiveJob, why: str = "") -> None:
        if job.function in self._hidden:
            return
        worker = job.owner.name if job.owner is not None else b""
        event = JobEvent(
            self._engine.now, what, jsonbytes.encode(job.handle), jsonbytes.encode(job.function),
            job.door, jsonbytes.encode(worker), why,
        )  # fmt: skip
        for listener in self._listeners:
            listener(event)
