"""Events of jobs: for listeners in the server, and for the jobs of `tail`, one JSON line per event."""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from geartrain import jsonbytes
from geartrain.admin.verbs import EVENTS
from geartrain.admin.views import STATES, JobEvent
from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Observer, Timer
from geartrain.engine.job import LiveJob, Progress
from geartrain.errors import AdminError
from geartrain.rights import READ, Identity

Listener = Callable[[JobEvent], None]


class ClusterListener(Protocol):
    """Hears events of all servers of a cluster."""

    def hear(self, event: JobEvent) -> None:
        """Something happened to a job."""

    def miss(self, count: int) -> None:
        """Another server has left out so many events."""


# More than a person can read. A server that executes a hundred thousand jobs per second must not describe each.
_LINES_PER_SECOND: Final = 1000
_SECOND: Final = 1.0
TAILS_MOST: Final = 100

_encoder: Final = msgspec.json.Encoder()


def event_names(names: Iterable[str]) -> frozenset[str]:
    """The names as a set; an AdminError for a name that no event has, because it would never arrive."""
    for name in names:
        if name not in EVENTS:
            raise AdminError("bad-request", f"unknown event {name!r}; the events are {', '.join(EVENTS)}")
    return frozenset(names)


class JobEvents(Observer):
    """Passes events of the engine to listeners. It observes the engine only while it has listeners."""

    def __init__(self, engine: Engine, hidden: Container[bytes]) -> None:
        self._engine = engine
        self._hidden = hidden  # functions whose jobs have no events
        self._listeners: list[Listener] = []
        self._cluster_listeners: list[ClusterListener] = []
        self.on_interest: Callable[[bool], None] | None = None  # told whether somebody listens to the whole cluster

    def subscribe(self, listener: Listener) -> None:
        """Add a listener. It is called in the middle of engine verbs, so it must not call the engine."""
        if not self._listeners:
            self._engine.subscribe(self)
        self._listeners = [*self._listeners, listener]

    def unsubscribe(self, listener: Listener) -> None:
        """Remove a listener."""
        if not self._listeners:
            return
        self._listeners = [other for other in self._listeners if other != listener]
        if not self._listeners:
            self._engine.unsubscribe(self)

    def subscribe_cluster(self, listener: ClusterListener) -> None:
        """Add a listener to the events of this server and of all others of its cluster."""
        self.subscribe(listener.hear)
        self._cluster_listeners = [*self._cluster_listeners, listener]
        self._tell_interest()

    def unsubscribe_cluster(self, listener: ClusterListener) -> None:
        """Remove such a listener."""
        self.unsubscribe(listener.hear)
        self._cluster_listeners = [other for other in self._cluster_listeners if other is not listener]
        self._tell_interest()

    @property
    def wants_cluster(self) -> bool:
        """Whether somebody listens to the whole cluster."""
        return bool(self._cluster_listeners)

    def relay(self, events: Sequence[JobEvent], missed: int) -> None:
        """Pass on events of another server, which has left out some."""
        for listener in self._cluster_listeners:
            for event in events:
                listener.hear(event)
            if missed:
                listener.miss(missed)

    def _tell_interest(self) -> None:
        if self.on_interest is not None:
            self.on_interest(self.wants_cluster)

    def created(self, job: LiveJob) -> None:
        self._emit("submitted", job)

    def started(self, job: LiveJob) -> None:
        self._emit("started", job)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._emit("progress", job)

    def requeued(self, job: LiveJob, why: str) -> None:
        self._emit("requeued", job, why)

    def rescheduled(self, job: LiveJob, why: str) -> None:
        self._emit("scheduled", job, why)

    def finished(self, job: LiveJob, result: bytes) -> None:
        self._emit(STATES[job.state], job, job.reason)

    def _emit(self, what: str, job: LiveJob, reason: str = "") -> None:
        if job.function in self._hidden or job.id in self._engine.borrowed:  # whose events come from its home
            return
        event = JobEvent(
            at=self._engine.now,
            what=what,
            handle=jsonbytes.encode(job.handle),
            function=jsonbytes.encode(job.function),
            door=job.door,
            worker=jsonbytes.encode(job.owner.name if job.owner is not None else b""),
            reason=reason,
        )
        for listener in self._listeners:
            listener(event)


class Tail:
    """A control job that receives events, and which of them."""

    def __init__(
        self,
        job: LiveJob,
        identity: Identity | None = None,
        function: bytes = b"",
        what: Sequence[str] = (),
        local: bool = False,
    ) -> None:
        self.job = job
        self.local = local  # events of this server alone, where it is one of a cluster
        self.identity = identity  # of its client
        self.function = jsonbytes.encode(function) if function else ""
        self.what = event_names(what)
        self.lines = 0  # in this second
        self.missed = 0  # in this second, above the limit

    def wants(self, event: JobEvent) -> bool:
        """Whether the event is of the function and of the kind that this tail is for, and its client may read it."""
        return (
            (not self.function or event.function == self.function)
            and not (self.local and event.server)
            and (not self.what or event.what in self.what)
            and (self.identity is None or self.identity.rights.allow(READ, jsonbytes.decode(event.function)))
        )


class Tails(Timer):
    """All tails. A timer removes those whose clients have left, once a second while there are any."""

    def __init__(self, engine: Engine, events: JobEvents, finish: Callable[[LiveJob, bytes], None]) -> None:
        super().__init__()
        self._engine = engine
        self._events = events
        self._finish = finish
        self._tails: list[Tail] = []
        self._is_ended = False
        engine.timers.append(self)

    def add(self, tail: Tail) -> None:
        """Send events to one more job."""
        if self._is_ended:
            raise AdminError("unavailable", "the server stops")
        if len(self._tails) >= TAILS_MOST:
            raise AdminError("conflict", f"{TAILS_MOST} tails are running, which is the limit")
        if not self._tails:
            self._events.subscribe_cluster(self)
        self._tails = [*self._tails, tail]
        self.at = self._engine.now + _SECOND

    def end(self) -> None:
        """Complete all tails, and take no more: the server stops."""
        self._is_ended = True
        for tail in self._tails:
            self._complete(tail)

    def fire(self, now: float) -> None:
        """Report events that were left out, and complete tails whose clients have left."""
        if not self._tails:
            self.at = NEVER
            return
        if now < self.at <= now + 2 * _SECOND:
            return
        self.at = now + _SECOND
        for tail in self._tails:
            missed, tail.lines, tail.missed = tail.missed, 0, 0
            if not tail.job.watchers:
                self._complete(tail)
            elif missed:
                self._engine.data(tail.job, _encoder.encode({"missed": missed}) + b"\n")

    def miss(self, count: int) -> None:
        """Another server has left out so many events."""
        for tail in self._tails:
            tail.missed += 0 if tail.local else count

    def hear(self, event: JobEvent) -> None:
        """Send an event to the tails that want it."""
        line = b""
        for tail in self._tails:
            if not tail.wants(event):
                continue
            if tail.lines >= _LINES_PER_SECOND:
                tail.missed += 1
                continue
            tail.lines += 1
            line = line or _encoder.encode(event) + b"\n"
            self._engine.data(tail.job, line)

    def _complete(self, tail: Tail) -> None:
        self._tails = [other for other in self._tails if other is not tail]
        if not self._tails:
            self._events.unsubscribe_cluster(self)
        self._finish(tail.job, b'{"answer":null}')
