"""Watchers, workers and a journal for the real engine: they behave as their naive models, and record every call."""

from collections import defaultdict
from typing import NamedTuple, Protocol

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal, Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.worker import Worker
from geartrain.errors import QueueFullError
from geartrain.model import JobState
from tests.property.naive.records import NaiveWatcher, NaiveWorker

Heard = defaultdict[str, list[tuple[object, ...]]]  # the calls that each of them received


class Machine(Protocol):
    """What they need from the state machine."""

    engine: Engine
    heard: Heard

    def claim_for(self, worker: "RecordingWorker") -> LiveJob | None:
        """Claim a job for this worker."""


class RecordingWatcher(Watcher):
    """A watcher that behaves as its naive model."""

    __slots__ = ("machine", "model", "patience")

    def __init__(self, machine: "Machine", model: NaiveWatcher) -> None:
        super().__init__()
        self.machine, self.model, self.patience = machine, model, model.patience

    def _hear(self, what: str, job: LiveJob, report: bool = False) -> None:
        self.machine.heard[f"watcher {self.model.number}"].append((what, job.handle, job.state.name.lower()))
        if report:
            return
        engine = self.machine.engine
        if self.model.manner == "again" and self.patience:
            self.patience -= 1
            try:
                engine.submit(job.function, b"", b"again", job.priority, False, self)
            except QueueFullError:
                pass
        elif self.model.manner == "angry" and what != "complete":
            for other in sorted(self.watching, key=lambda job: job.id):
                if engine.find(other.handle) is other and other in self.watching:
                    engine.cancel(other)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._hear("progress", job, report=True)

    def data(self, job: LiveJob, data: bytes) -> None:
        self._hear("data", job, report=True)

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._hear("warning", job, report=True)

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._hear("complete", job)

    def fail(self, job: LiveJob, reason: str) -> None:
        assert reason
        assert job.reason == reason
        self._hear("fail", job)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._hear("exception", job)

    def expired(self, job: LiveJob) -> None:
        self._hear("expired", job, report=True)
        if self.model.manner == "angry":
            self.machine.engine.cancel(job)
        elif self.model.manner == "again":
            self.machine.engine.unwatch(job, self)


class RecordingWorker(Worker):
    """A worker that behaves as its naive model."""

    __slots__ = ("machine", "model")

    def __init__(self, machine: "Machine", model: NaiveWorker) -> None:
        super().__init__("test", b"%d" % model.number)
        self.machine, self.model = machine, model

    def hear(self, *words: object) -> None:
        self.machine.heard[f"worker {self.model.number}"].append(words)

    def wake(self) -> None:
        assert not self.idle
        self.hear("wake")
        if self.model.manner != "slow":
            job = self.machine.claim_for(self)
            self.hear("got", job and job.handle)
            if job is None and self.model.manner == "parked":
                self.machine.engine.sleep(self)
            elif job is not None and self.model.manner == "swift":
                self.machine.engine.complete(self, job, b"swift")

    def runs(self, handle: bytes) -> LiveJob:
        """Return the job of that handle, which it must run."""
        job = self.running.get(handle)
        assert job is not None
        return job

    def revoked(self, job: LiveJob) -> None:
        assert job.handle not in self.running
        self.hear("revoked", job.handle)


class Row(NamedTuple):
    """A job as a store keeps it, and as a restart restores it."""

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
    expires_at: float
    partition: bytes
    after: bytes

    @classmethod
    def of(cls, job: LiveJob) -> "Row":
        return cls(
            job.id, job.function, job.unique, job.payload, job.priority, job.run_at, job.submitted_at, job.count,
            job.timeout, job.attempts, job.state is JobState.DEAD, job.reason,
            job.keeps_result, job.expires_at, job.partition, job.after,
        )  # fmt: skip

    def job(self, handle: bytes) -> LiveJob:
        job = LiveJob(
            self.id, handle, self.function, self.unique, self.payload, self.priority, True, self.run_at,
            self.submitted_at, "test",
        )  # fmt: skip
        job.count, job.timeout, job.attempts, job.reason = self.steps, self.timeout, self.attempts, self.reason
        job.keeps_result, job.expires_at, job.partition = self.keeps_result, self.expires_at, self.partition
        job.after = self.after
        if self.dead:
            job.state = JobState.DEAD
        return job


class RecordingJournal(Journal):
    """Keeps what a store would keep, and fails on calls that would be inconsistent."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self.kept: dict[bytes, Row] = {}
        self.failed_jobs: dict[bytes, Row] = {}  # kept whole

    def accepted(self, job: LiveJob) -> None:
        assert job.handle not in self.kept
        self._keep("accepted", job)

    def changed(self, job: LiveJob) -> None:
        assert job.handle in self.kept
        self._keep("changed", job)

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        assert job.state in (JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED)
        del self.kept[job.handle]
        number = worker.model.number if isinstance(worker, RecordingWorker) else None
        self.machine.heard["journal"].append(("finished", job.handle, number))

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        assert job.state is JobState.FAILED
        assert job.handle not in self.failed_jobs
        del self.kept[job.handle]
        self.failed_jobs[job.handle] = Row.of(job)
        number = worker.model.number if isinstance(worker, RecordingWorker) else None
        self.machine.heard["journal"].append(("failed", job.handle, number))

    def retried(self, job: LiveJob) -> None:
        assert job.handle not in self.kept
        del self.failed_jobs[job.handle]
        self._keep("retried", job)

    def _keep(self, what: str, job: LiveJob) -> None:
        assert job.background
        self.kept[job.handle] = Row.of(job)
        self.machine.heard["journal"].append((what, job.handle, None))
