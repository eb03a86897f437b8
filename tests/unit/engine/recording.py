"""Implementations of the engine's interfaces that record every call, with the state of the job at that moment.

They extend the base classes that doors and stores extend; nothing is mocked.
"""

from collections.abc import Callable
from typing import NamedTuple

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal, Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.worker import Worker
from geartrain.model import Expiry, JobState

NOW = 1000.0  # the time at which every test starts
OVER = [JobState.DONE, JobState.FAILED, JobState.CANCELLED]
ALIVE = [JobState.SCHEDULED, JobState.QUEUED, JobState.RUNNING]


class Heard(NamedTuple):
    """One call to a watcher."""

    what: str
    handle: bytes
    value: object
    state: JobState  # of the job, when the call came


class RecordingWatcher(Watcher):
    """A watcher that records its calls, and may call another verb from them (`react`)."""

    __slots__ = ("heard", "react")

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Heard] = []
        self.react: Callable[[str, LiveJob], None] = _do_nothing

    @property
    def words(self) -> list[tuple[str, object]]:
        """The calls without the job."""
        return [(heard.what, heard.value) for heard in self.heard]

    def _hear(self, what: str, job: LiveJob, value: object) -> None:
        self.heard.append(Heard(what, job.handle, value, job.state))
        self.react(what, job)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._hear("progress", job, progress)

    def data(self, job: LiveJob, data: bytes) -> None:
        self._hear("data", job, data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._hear("warning", job, data)

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._hear("complete", job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._hear("fail", job, reason)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._hear("exception", job, data)

    def expired(self, job: LiveJob) -> None:
        self._hear("expired", job, None)


class RecordingWorker(Worker):
    """A worker that counts how often it was woken, and may claim at once (`react`)."""

    __slots__ = ("react", "taken", "woken")

    def __init__(self, name: bytes = b"", door: str = "test") -> None:
        super().__init__(door, name)
        self.woken = 0
        self.taken: list[bytes] = []  # handles of the jobs that were revoked
        self.react: Callable[[], object] = int

    def wake(self) -> None:
        assert not self.idle, "a worker that is woken is no longer idle"
        self.woken += 1
        self.react()

    def revoked(self, job: LiveJob) -> None:
        assert job.handle not in self.running, "a worker does not run a revoked job"
        self.taken.append(job.handle)


class Entry(NamedTuple):
    """One call to the journal, with what a store would have written."""

    what: str
    handle: bytes
    payload: bytes | None  # None: the job is cold
    run_at: float
    attempts: int
    state: JobState
    reason: str
    result: bytes = b""
    worker: Worker | None = None


class RecordingJournal(Journal):
    """A journal that records its calls, and refuses foreground jobs."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    @property
    def calls(self) -> list[tuple[str, bytes]]:
        return [(entry.what, entry.handle) for entry in self.entries]

    @property
    def names(self) -> list[str]:
        return [entry.what for entry in self.entries]

    def _write(self, what: str, job: LiveJob, result: bytes = b"", worker: Worker | None = None) -> None:
        assert job.background, f"{what} was called for a foreground job"
        self.entries.append(
            Entry(
                what, job.handle, job.payload_in_memory, job.run_at, job.attempts, job.state, job.reason, result, worker
            )
        )

    def accepted(self, job: LiveJob) -> None:
        self._write("accepted", job)

    def changed(self, job: LiveJob) -> None:
        self._write("changed", job)

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        self._write("finished", job, result, worker)


def hire(
    engine: Engine,
    *functions: bytes,
    name: bytes = b"",
    timeout: float = 0.0,
    on_timeout: Expiry = Expiry.FAIL,
    broadcast: bool = False,
    asleep: bool = False,
) -> RecordingWorker:
    """Return a worker that offers these functions; with `asleep`, an idle one."""
    worker = RecordingWorker(name)
    for function in functions:
        engine.register(worker, function, timeout, on_timeout, broadcast)
    if asleep:
        engine.sleep(worker)
    return worker


def claim(engine: Engine, worker: Worker) -> LiveJob:
    """Claim a job; there must be one."""
    job = engine.claim(worker)
    assert job is not None, "there should be a job"
    return job


def payloads(engine: Engine, worker: Worker) -> list[bytes]:
    """Claim all jobs; return their payloads in order."""
    order = []
    while (job := engine.claim(worker)) is not None:
        order.append(job.payload)
    return order


def job_in(
    engine: Engine, state: JobState, watcher: RecordingWatcher | None = None, background: bool = False
) -> tuple[LiveJob, RecordingWorker]:
    """Return a job with a unique key in this state, and the worker of its function."""
    worker = hire(engine, b"f")
    run_at = NOW + 50 if state is JobState.SCHEDULED else 0.0
    job = engine.submit(b"f", b"key", b"in", background=background, watcher=watcher, run_at=run_at)
    if state not in (JobState.SCHEDULED, JobState.QUEUED):
        claim(engine, worker)
    if state is JobState.DONE:
        engine.complete(worker, job, b"")
    elif state is JobState.FAILED:
        engine.fail(worker, job)
    elif state is JobState.CANCELLED:
        engine.cancel(job)
    elif state is JobState.DEAD:
        engine.policy.max_attempts = 1
        engine.remove_worker(worker)
    assert job.state is state
    return job, worker


def _do_nothing(what: str, job: LiveJob) -> None:
    pass
