"""A waiting client, as the engine sees it."""

from mypy_extensions import mypyc_attr

from geartrain.engine.deadlines import NEVER
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.worker import Worker


@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """What a client hears of the jobs it waits for. Doors override the methods their protocol can say.

    Calls come from inside engine verbs: an override writes to its own connection's buffer and returns. When
    `complete`, `fail` or `exception` is called, the job is over and no longer watched.
    """

    __slots__ = ("watching",)

    def __init__(self) -> None:
        self.watching: set[LiveJob] = set()

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """The worker said how far it is."""

    def data(self, job: LiveJob, data: bytes) -> None:
        """The worker sent a part of the result."""

    def warning(self, job: LiveJob, data: bytes) -> None:
        """The worker sent a warning."""

    def complete(self, job: LiveJob, result: bytes) -> None:
        """The job is done."""

    def fail(self, job: LiveJob, reason: str) -> None:
        """The job failed, was cancelled, or was given up; `job.state` says which."""

    def exception(self, job: LiveJob, data: bytes) -> None:
        """The job failed with these words of its worker."""

    def expired(self, job: LiveJob) -> None:
        """The job's time ran out, and another worker is about to get it. Who stops watching it here may end it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Observer:
    """The moments in the life of each job. While nobody attends, silence costs nothing.

    The calls come from inside engine verbs: an override writes to its own buffers and returns.
    """

    def created(self, job: LiveJob) -> None:
        """A job exists from now on."""

    def started(self, job: LiveJob) -> None:
        """A worker has been given a job; after a lost worker this comes again."""

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """Its worker said how far it is."""

    def requeued(self, job: LiveJob, why: str) -> None:
        """A job that was running, or was dead, waits in its queue again."""

    def rescheduled(self, job: LiveJob, why: str) -> None:
        """A job that was running waits for `job.run_at` now."""

    def finished(self, job: LiveJob, result: bytes) -> None:
        """A job is over: `job.state` says how. The words of a failure are its result, or its reason."""


class ObserverGroup(Observer):
    """Several of them as one."""

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

    def requeued(self, job: LiveJob, why: str) -> None:
        for member in self.members:
            member.requeued(job, why)

    def rescheduled(self, job: LiveJob, why: str) -> None:
        for member in self.members:
            member.rescheduled(job, why)

    def finished(self, job: LiveJob, result: bytes) -> None:
        for member in self.members:
            member.finished(job, result)


def combined(members: list[Observer]) -> Observer | None:
    """What the engine calls for these: nobody, the one, or all in a hall."""
    if not members:
        return None
    return members[0] if len(members) == 1 else ObserverGroup(members)


@mypyc_attr(allow_interpreted_subclasses=True)
class Timer:
    """One who is in `engine.alarms` is called at every tick, and no later than `at`."""

    def __init__(self) -> None:
        self.at = NEVER  # when it must be called

    def fire(self, now: float) -> None:
        """Do what is due, and set `at` anew. It may be called early: the clock may have been moved."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """Three facts about background jobs, and values that doors keep; foreground jobs are never mentioned here.

    The calls come in the middle of a verb and must return at once: a real journal only gathers, and writes
    what one tick gathered as one batch.
    """

    def accepted(self, job: LiveJob) -> None:
        """A background job exists from now on and must survive a crash."""

    def changed(self, job: LiveJob) -> None:
        """A job that was accepted before has another payload, time, state, attempt or reason now."""

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        """A job that was accepted before has ended (done, failed or cancelled) and need not run again."""

    def drained(self) -> None:
        """The last of very many jobs is over: a good time to give memory back."""

    def save_value(self, name: str, value: bytes) -> None:
        """Remember a value under a name, for whoever asks at the next start."""
