"""Clients, workers and a store that the real engine talks to: they behave as their naive twins, and say so aloud."""

from collections import defaultdict
from typing import NamedTuple, Protocol

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal, Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.worker import Worker
from geartrain.errors import QueueFullError
from geartrain.model import JobState
from tests.property.naive.records import NaiveWatcher, NaiveWorker

Heard = defaultdict[str, list[tuple[object, ...]]]  # what was said to whom


class Day(Protocol):
    """What they need of the machine that drives them."""

    engine: Engine
    heard: Heard

    def hand_out(self, worker: "LoudWorker") -> LiveJob | None:
        """Claim a job for this worker."""


class LoudWatcher(Watcher):
    """A client of the engine that behaves as its naive twin."""

    __slots__ = ("day", "patience", "twin")

    def __init__(self, day: "Day", twin: NaiveWatcher) -> None:
        super().__init__()
        self.day, self.twin, self.patience = day, twin, twin.patience

    def _hear(self, what: str, job: LiveJob, news: bool = False) -> None:
        self.day.heard[f"watcher {self.twin.number}"].append((what, job.handle, job.state.name.lower()))
        if news:
            return
        engine = self.day.engine
        if self.twin.manner == "again" and self.patience:
            self.patience -= 1
            try:
                engine.submit(job.function, b"", b"again", job.priority, False, self)
            except QueueFullError:
                pass
        elif self.twin.manner == "angry" and what != "complete":
            for other in sorted(self.watching, key=lambda job: job.id):
                if engine.find(other.handle) is other and other in self.watching:
                    engine.cancel(other)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._hear("progress", job, news=True)

    def data(self, job: LiveJob, data: bytes) -> None:
        self._hear("data", job, news=True)

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._hear("warning", job, news=True)

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._hear("complete", job)

    def fail(self, job: LiveJob, reason: str) -> None:
        assert reason
        assert job.reason == reason
        self._hear("fail", job)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._hear("exception", job)

    def expired(self, job: LiveJob) -> None:
        self._hear("expired", job, news=True)
        if self.twin.manner == "angry":
            self.day.engine.cancel(job)
        elif self.twin.manner == "again":
            self.day.engine.unwatch(job, self)


class LoudWorker(Worker):
    """A worker of the engine that behaves as its naive twin."""

    __slots__ = ("day", "twin")

    def __init__(self, day: "Day", twin: NaiveWorker) -> None:
        super().__init__("test", b"%d" % twin.number)
        self.day, self.twin = day, twin

    def hear(self, *words: object) -> None:
        self.day.heard[f"worker {self.twin.number}"].append(words)

    def wake(self) -> None:
        assert not self.idle
        self.hear("wake")
        if self.twin.manner != "slow":
            job = self.day.hand_out(self)
            self.hear("got", job and job.handle)
            if job is None and self.twin.manner == "parked":
                self.day.engine.sleep(self)
            elif job is not None and self.twin.manner == "swift":
                self.day.engine.complete(self, job, b"swift")

    def runs(self, handle: bytes) -> LiveJob:
        """The job of that handle, which it must have."""
        job = self.running.get(handle)
        assert job is not None
        return job

    def revoked(self, job: LiveJob) -> None:
        assert job.handle not in self.running
        self.hear("revoked", job.handle)


class Row(NamedTuple):
    """What a store keeps of a job, and what a restart makes of it."""

    id: int
    function: bytes
    unique: bytes
    payload: bytes
    priority: int
    run_at: float
    submitted_at: float
    steps: int
    timeout: float
    attempts: int
    dead: bool
    reason: str
    keeps_result: bool

    @classmethod
    def of(cls, job: LiveJob) -> "Row":
        return cls(
            job.id, job.function, job.unique, job.payload, job.priority, job.run_at, job.submitted_at, job.count,
            job.timeout, job.attempts, job.state is JobState.DEAD, job.reason,
            job.keeps_result,
        )  # fmt: skip

    def job(self, handle: bytes) -> LiveJob:
        job = LiveJob(
            self.id, handle, self.function, self.unique, self.payload, self.priority, True, self.run_at,
            self.submitted_at, "test",
        )  # fmt: skip
        job.count, job.timeout, job.attempts, job.reason = self.steps, self.timeout, self.attempts, self.reason
        job.keeps_result = self.keeps_result
        if self.dead:
            job.state = JobState.DEAD
        return job


class LoudJournal(Journal):
    """Keeps what a store would keep, and refuses what would make no sense to it."""

    def __init__(self, day: "Day") -> None:
        self.day = day
        self.kept: dict[bytes, Row] = {}

    def accepted(self, job: LiveJob) -> None:
        assert job.handle not in self.kept
        self._keep("accepted", job)

    def changed(self, job: LiveJob) -> None:
        assert job.handle in self.kept
        self._keep("changed", job)

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        assert job.state in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)
        del self.kept[job.handle]
        number = worker.twin.number if isinstance(worker, LoudWorker) else None
        self.day.heard["journal"].append(("finished", job.handle, number))

    def _keep(self, what: str, job: LiveJob) -> None:
        assert job.background
        self.kept[job.handle] = Row.of(job)
        self.day.heard["journal"].append((what, job.handle, None))
