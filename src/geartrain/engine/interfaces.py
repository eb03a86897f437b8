"""The interfaces through which the engine calls out: Watcher, Loan, Observer, Timer, Journal and
PayloadReader.

All calls come from inside engine verbs, at a moment when the engine's state is consistent. An implementation writes to
its own buffers and returns; it may call further engine verbs.
"""

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from geartrain.engine.deadlines import NEVER
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.worker import Worker

if TYPE_CHECKING:
    from geartrain.engine.queue import JobQueue


@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """A client that waits for jobs. Doors override the methods that their protocol supports.

    When `complete`, `fail` or `exception` is called, the job is finished and no longer watched.
    """

    __slots__ = ("watching",)

    def __init__(self) -> None:
        self.watching: set[LiveJob] = set()

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """The worker reported progress."""

    def data(self, job: LiveJob, data: bytes) -> None:
        """The worker sent a part of the result."""

    def warning(self, job: LiveJob, data: bytes) -> None:
        """The worker sent a warning."""

    def complete(self, job: LiveJob, result: bytes) -> None:
        """The job is done."""

    def fail(self, job: LiveJob, reason: str) -> None:
        """The job failed, was cancelled, expired or is dead; `job.state` says which."""

    def exception(self, job: LiveJob, data: bytes) -> None:
        """The job failed, and its worker sent data about it."""

    def expired(self, job: LiveJob) -> None:
        """The job timed out and is about to be requeued. Calling `unwatch` here may cancel it instead."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Loan(Watcher):
    """The way home for borrowed jobs; one for each server that lends.

    When one of these methods is called, the engine has forgotten the job; `worker` is the one that had it.
    """

    __slots__ = ()

    def failed(self, job: LiveJob, worker: Worker, reason: str) -> None:
        """The attempt failed, and the job may run again after a delay."""
        raise NotImplementedError

    def lost(self, job: LiveJob, worker: Worker, reason: str) -> None:
        """The worker will not answer for the job."""
        raise NotImplementedError

    def handed_back(self, job: LiveJob) -> None:
        """The worker returns the job; the attempt does not count."""
        raise NotImplementedError

    def rescheduled(self, job: LiveJob, worker: Worker, run_at: float, step: int, reset_attempts: bool) -> None:
        """The worker wants the job to run again at that time; see `reschedule`."""
        raise NotImplementedError

    def postponed(self, job: LiveJob, worker: Worker, run_at: float, reason: str) -> None:
        """The attempt failed, and the job is to run again at that time."""
        raise NotImplementedError

    def gave_up(self, job: LiveJob, worker: Worker, reason: str) -> None:
        """The job is to be dead."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class KeyWaiter:
    """Someone who submitted a job whose unique key may be in use at another server of the cluster."""

    __slots__ = ()

    def key_taken(self, handle: bytes) -> None:
        """The job with this handle has the key, and stands for the one that was submitted."""
        raise NotImplementedError

    def key_free(self) -> None:
        """The job that was submitted has the key; or it was retracted, and is a background job no longer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Observer:
    """Receives the events of every job, after `engine.subscribe`. Without observers, events cost nothing."""

    def created(self, job: LiveJob) -> None:
        """A job was submitted; a coalesced submission is not a new job."""

    def started(self, job: LiveJob) -> None:
        """A job was assigned to a worker; again for every further attempt."""

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """The worker reported progress."""

    def requeued(self, job: LiveJob, reason: str) -> None:
        """A job that was running, had failed or was dead is queued again."""

    def rescheduled(self, job: LiveJob, reason: str) -> None:
        """A job that was running waits for `job.run_at`."""

    def finished(self, job: LiveJob, result: bytes) -> None:
        """A job ended in `job.state`. If it failed, the result is what the worker sent, if anything."""


class ObserverGroup(Observer):
    """Passes every event on to several observers."""

    def __init__(self, members: list[Observer]) -> None:
        self.members = members

    def created(self, job: LiveJob) -> None:
        for member in self.members:
            member.created(job)

    def started(self, job: LiveJob) -> None:
        for member in self.members:
            member.started(job)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        for member in self.members:
            member.progress(job, progress)

    def requeued(self, job: LiveJob, reason: str) -> None:
        for member in self.members:
            member.requeued(job, reason)

    def rescheduled(self, job: LiveJob, reason: str) -> None:
        for member in self.members:
            member.rescheduled(job, reason)

    def finished(self, job: LiveJob, result: bytes) -> None:
        for member in self.members:
            member.finished(job, result)


def combine(observers: list[Observer]) -> Observer | None:
    """Return one observer that stands for all of these, or None if there are none."""
    if not observers:
        return None
    return observers[0] if len(observers) == 1 else ObserverGroup(observers)


@mypyc_attr(allow_interpreted_subclasses=True)
class Timer:
    """An entry of `engine.timers`: it is called at every tick, and there is a tick no later than `at`."""

    def __init__(self) -> None:
        self.at = NEVER  # when it must be called next

    def fire(self, now: float) -> None:
        """Do what is due and set `at`. It may be called before `at`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PayloadReader:
    """Reads payloads that are on disk, while the engine goes on."""

    def read(self, queue: "JobQueue", jobs: list[LiveJob]) -> None:
        """Read the payloads of cold jobs of a queue, and call `PayloadMemory.arrived` later."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """Receives every change that must survive a crash: background jobs and saved values, never foreground jobs.

    The calls come in the middle of a verb and must return at once. A journal collects changes and writes those of one
    tick as one batch.
    """

    def accepted(self, job: LiveJob) -> None:
        """A background job was submitted."""

    def changed(self, job: LiveJob) -> None:
        """An accepted job has another payload, time, state, number of attempts or reason."""

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        """An accepted job ended (done, failed, cancelled or expired) and must not run again."""

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        """An accepted job failed, and is to be kept whole, so that it can be retried."""
        self.finished(job, result, worker)

    def revived(self, job: LiveJob) -> None:
        """A dead job is queued again."""
        self.changed(job)

    def retried(self, job: LiveJob) -> None:
        """A failed job that was kept whole is queued again; its record is removed."""
        self.revived(job)

    def reserving(self, job: LiveJob) -> None:
        """A job was accepted, revived or retried that must not run until its unique key is known to be free."""

    def reserve_key(self, job: LiveJob) -> None:
        """A foreground job must not run until its unique key is known to be free at all servers."""

    def release_key(self, job: LiveJob) -> None:
        """A foreground job has ended whose key was reserved, or was to be; or a job gave way to another one.

        The store has no row of it any more.
        """

    def withdrawn(self, job: LiveJob) -> None:
        """What was said of a job since the last commit is not to be saved, because another job has its unique key."""

    def remove_record(self, id: int) -> None:
        """Remove the record of a job that has ended, with all that is kept of it."""

    def add_log(self, id: int, added: bytes) -> None:
        """Add lines to the log of a background job, which is kept as long as the job and its record."""

    def drained(self) -> None:
        """The last of many jobs ended: a good time to return memory to the system."""

    def save_value(self, name: str, value: bytes) -> None:
        """Save a value under a name, replacing an older one; it is available at the next start."""
