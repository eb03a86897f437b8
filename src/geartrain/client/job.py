"""A job as the function that runs it sees it."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from geartrain.client import arguments
from geartrain.client.arguments import Duration, Text
from geartrain.errors import UnsupportedError

Result = Text | None
Function = Callable[["Job"], Result] | Callable[["Job"], Awaitable[Result]]


class JobDetails(NamedTuple):
    """What a worker knows of a job; plain data, because it may be sent to another process."""

    payload: bytes
    function: bytes
    handle: bytes = b""
    unique: bytes = b""
    no_reschedule: str = ""  # why the job cannot be rescheduled; empty: it can
    attempt: int = 0  # the number of this attempt, from 1; 0: the protocol does not say


class Reporter(Protocol):
    """Sends the reports of a running job: `kind` is progress, data or warn, the rest its arguments."""

    def __call__(self, kind: str, *values: Any) -> None: ...


class Job:
    """A job to run, and the methods with which its function reports while it runs.

        @worker.function("resize")
        def resize(job):
            job.progress(1, 2)
            return shrink(job.payload)

    The methods can be called wherever the function runs: on the event loop, in a thread or in another process.
    """

    __slots__ = ("_report", "delay", "details", "payload", "revoked")

    def __init__(self, details: JobDetails, report: Reporter) -> None:
        self.details = details
        self.payload = details.payload
        self.revoked = False  # the server took the job back: its result will be ignored
        self.delay: float | None = None  # seconds until it shall run again, if it was rescheduled
        self._report = report

    def __repr__(self) -> str:
        return f"<Job {self.function} {self.handle}>"

    @property
    def function(self) -> str:
        return arguments.decoded(self.details.function)

    @property
    def handle(self) -> str:
        """The server's name for the job; empty where the protocol has no handles."""
        return arguments.decoded(self.details.handle)

    @property
    def unique(self) -> str:
        return arguments.decoded(self.details.unique)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; 0 where the protocol does not say: it does over gearman and http."""
        return self.details.attempt

    def progress(self, numerator: float, denominator: float = 100) -> None:
        """Report progress to the clients that wait."""
        self._report("progress", numerator, denominator)

    def data(self, part: Text) -> None:
        """Send a part of the result."""
        self._report("data", arguments.encoded(part))

    def warn(self, text: Text) -> None:
        """Send a warning."""
        self._report("warn", arguments.encoded(text))

    def report(self, kind: str, *values: Any) -> None:
        """Pass on a report that was made in another process."""
        self._report(kind, *values)

    def reschedule(self, delay: Duration) -> None:
        """Run the job again after this time instead of ending it; what the function returns is ignored then."""
        if self.details.no_reschedule:
            raise UnsupportedError(self.details.no_reschedule)
        self.delay = max(arguments.seconds(delay), 0.0)
