"""The borrower's side of a link: jobs of the other server that this one runs.

Its `LinkLoan` is the watcher of all of them. A report goes over the link at once, if there is a connection. A verdict
is kept until the home says that it is durable: over a new connection it is repeated, and if the home has died,
whoever takes over its jobs gets it. So a job that was finished is not run again because its home was lost.

A job for which no worker was free soon goes back.
"""

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from geartrain.engine.interfaces import Loan
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.lifecycle import CANCELLED, QUEUED, RUNNING
from geartrain.engine.worker import Worker
from geartrain.runtime.timers import DelayedCall
from geartrain.wire import peer as wire

if TYPE_CHECKING:
    from geartrain.doors.peer.link import PeerLink

# A job goes back that has waited so long for a worker. One that was woken for it may be slow, or far away, or busy with
# a job of another server by now. Without one, the job was sent ahead, and a worker should have been free by now.
_WOKEN_SECONDS: Final = 1.0
_AHEAD_SECONDS: Final = 0.05
_MOST_DOUBLED: Final = 6  # with every return of a job its borrowers wait twice as long, so that it is run at last
_SWEEP_SECONDS: Final = 0.025


class _Borrowed:
    """What the link remembers of a job."""

    __slots__ = ("crew", "is_reported", "return_at")

    def __init__(self, crew: int, return_at: float) -> None:
        self.crew = crew  # for which it was lent
        self.return_at = return_at  # if it was not started by then, in the engine's time
        self.is_reported = False  # the home knows that it was started


class LinkLoan(Loan):
    """The jobs that this server has of one other server."""

    __slots__ = ("_link", "_sweep", "jobs", "unsettled")

    def __init__(self, link: "PeerLink") -> None:
        super().__init__()
        self._link = link
        self.jobs: dict[int, _Borrowed] = {}  # by id
        self.unsettled: deque[Any] = deque()  # verdicts that the home may not have, the oldest first
        self._sweep: DelayedCall | None = None

    # The connection

    def begin(self) -> None:
        """There is a new connection: repeat the verdicts."""
        for frame in self.unsettled:
            self._link.send(frame)

    def settle(self, verdicts: int, before: int) -> None:
        """So many verdicts of this connection are durable; `before` of them were known to be."""
        for _ in range(verdicts - before):
            if self.unsettled:
                self.unsettled.popleft()

    def held(self) -> list[int]:
        """Ids of the jobs that run or wait here."""
        return list(self.jobs)

    def known(self, low: int, high: int) -> list[int]:
        """Ids in a range that run here, wait, or have ended without the home's knowledge."""
        ids = {*self.jobs, *(frame.id for frame in self.unsettled)}
        return [id for id in ids if low <= id < high]

    def move(self, id: int, other: "LinkLoan") -> bool:
        """Another server is the home of a job now; return whether this loan knows the job."""
        is_known = bool(self.known(id, id + 1))
        if other is self or not is_known:
            return is_known
        borrowed = self.jobs.pop(id, None)
        verdict = self.take_verdict(id)
        job = self._link.engine.jobs.get(id)
        if borrowed is not None and job is not None:  # a verdict is about an earlier loan, which the old home has ended
            other.jobs[id] = borrowed
            self._link.engine.borrowed[id] = other
            self.watching.discard(job)
            other.watching.add(job)
            job.watchers = [other if watcher is self else watcher for watcher in job.watchers or ()]
            other.sweep_later()
        elif verdict is not None:
            other.verdict(verdict)
        return True

    def take_verdict(self, id: int) -> Any:
        """What became of a job here, if the home may not know it, or None. It is forgotten, and so is what was before.

        A home may lend a job again before it says that the last verdict is durable. So there may be several.
        """
        frames = [frame for frame in self.unsettled if frame.id == id]
        for frame in frames:
            self.unsettled.remove(frame)
        return frames[-1] if frames else None

    def forget(self) -> None:
        """The other server is gone for good, and nobody has taken its jobs: what they become is of no use."""
        self.unsettled.clear()

    # Jobs

    def borrow(self, frame: wire.Lend) -> None:
        """Queue a job that the other server lends."""
        engine = self._link.engine
        job = LiveJob(
            frame.id,
            frame.handle,
            frame.function,
            frame.unique,
            frame.payload,
            frame.priority,
            False,
            frame.run_at,
            frame.submitted_at,
            frame.door,
        )
        job.attempts, job.count, job.timeout, job.reducer = frame.attempts, frame.count, frame.timeout, frame.reducer
        is_asked_for = self._link.door.offers.comes_first(self._link, frame)
        seconds = _WOKEN_SECONDS if is_asked_for or engine.has_idle_worker(job.function) else _AHEAD_SECONDS
        self.jobs[job.id] = _Borrowed(frame.crew, engine.now + seconds * 2 ** min(frame.returns, _MOST_DOUBLED))
        if not engine.borrow(job, self):
            del self.jobs[job.id]
            self.verdict(wire.BackVerdict(frame.id, False))
        else:
            self.sweep_later()

    def sweep_later(self) -> None:
        """Look after jobs that wait here."""
        if self._sweep is None:
            self._sweep = self._link.timers.call_later(_SWEEP_SECONDS, self._sweep_jobs)

    def revoke(self, id: int) -> None:
        """The home has taken a job back."""
        engine = self._link.engine
        job = engine.jobs.get(id)
        if self.jobs.pop(id, None) is None or job is None:
            return
        self.watching.discard(job)
        job.watchers = [watcher for watcher in job.watchers or () if watcher is not self] or None
        if job.state is QUEUED:
            engine.return_loan(job)
        else:
            engine.cancel(job)
            engine.loan_ended(job)

    def _sweep_jobs(self) -> None:
        """Return what waits for too long, and tell the home what was started and has not ended soon."""
        self._sweep = None
        engine = self._link.engine
        waits = False
        for id, borrowed in list(self.jobs.items()):
            job = engine.jobs.get(id)
            if job is None or borrowed.is_reported:
                continue
            if job.state is RUNNING:
                borrowed.is_reported = True
                owner = job.owner
                door, name = (owner.door, owner.name) if owner is not None else ("", b"")
                self._link.send(wire.Started(id, door, name))
            elif engine.now >= borrowed.return_at or not engine.has_own_worker(job.function):
                engine.return_loan(job)
                self._end(job, wire.BackVerdict(id, False))
                self._link.door.offers.slow_down(borrowed.crew)
            else:
                waits = True
        if waits or any(not borrowed.is_reported for borrowed in self.jobs.values()):
            self.sweep_later()

    # What happens to a job

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._link.send(
            wire.ProgressFrame(
                job.id, progress.numerator, progress.denominator, progress.seconds_left, progress.verbatim
            )
        )

    def data(self, job: LiveJob, data: bytes) -> None:
        self._link.send(wire.DataReport(job.id, data))

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._link.send(wire.WarningReport(job.id, data))

    def expired(self, job: LiveJob) -> None:
        self._link.send(wire.Overdue(job.id))

    def complete(self, job: LiveJob, result: bytes) -> None:
        worker = self._worker()
        self._link.engine.loan_ended(job)
        self._end(job, wire.DoneVerdict(job.id, result, *worker))

    def fail(self, job: LiveJob, reason: str) -> None:
        worker = self._worker()
        self._link.engine.loan_ended(job)
        if job.state is CANCELLED:
            self._end(job, wire.CancelVerdict(job.id, reason))
        else:
            self._end(job, wire.FailedVerdict(job.id, reason, job.code, None, False, *worker))

    def exception(self, job: LiveJob, data: bytes) -> None:
        worker = self._worker()
        self._link.engine.loan_ended(job)
        self._end(job, wire.FailedVerdict(job.id, job.reason, job.code, data, False, *worker))

    def failed(self, job: LiveJob, worker: Worker, reason: str) -> None:
        self._end(job, wire.FailedVerdict(job.id, reason, job.code, None, True, worker.door, worker.name))

    def lost(self, job: LiveJob, worker: Worker, reason: str) -> None:
        self._end(job, wire.LostVerdict(job.id, reason, worker.door, worker.name))

    def handed_back(self, job: LiveJob) -> None:
        self._end(job, wire.BackVerdict(job.id, True))

    def rescheduled(self, job: LiveJob, worker: Worker, run_at: float, step: int, reset_attempts: bool) -> None:
        self._end(job, wire.RescheduleVerdict(job.id, run_at, step, reset_attempts, worker.door))

    def postponed(self, job: LiveJob, worker: Worker, run_at: float, reason: str) -> None:
        self._end(job, wire.PostponeVerdict(job.id, run_at, reason, worker.door, worker.name))

    def gave_up(self, job: LiveJob, worker: Worker, reason: str) -> None:
        self._end(job, wire.GiveUpVerdict(job.id, reason, worker.door, worker.name))

    def _worker(self) -> tuple[str, bytes]:
        """The door and the name of the worker that has just ended a job."""
        worker = self._link.engine.ended_by
        return (worker.door, worker.name) if worker is not None else ("", b"")

    def _end(self, job: LiveJob, frame: Any) -> None:
        borrowed = self.jobs.pop(job.id, None)
        if borrowed is not None:
            self._link.door.offers.ended(self._link, borrowed.crew)
        self.verdict(frame)

    def verdict(self, frame: Any) -> None:
        """Tell the home, and remember it until that is durable there."""
        self.unsettled.append(frame)
        self._link.send(frame)
