"""A waiting client, as the engine sees it."""

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob, Progress


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
