"""A job as the function that runs it sees it."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from geartrain.client import arguments
from geartrain.client.arguments import Duration, Text
from geartrain.errors import UnsupportedError

Result = Text | None
Function = Callable[["Job"], Result] | Callable[["Job"], Awaitable[Result]]


class Told(Protocol):
    """Whoever passes on what a running job says: `verb` is progress, data or warn, the rest its arguments."""

    def __call__(self, verb: str, *said: Any) -> None: ...


class Job:
    """What there is to do, and a way to report on it while it is done.

    Its methods can be called from wherever the function runs: the loop, a thread or another process.
    """

    __slots__ = ("_names", "_objection", "_tell", "delay", "payload", "revoked")

    def __init__(self, payload: bytes, names: tuple[bytes, bytes, bytes], tell: Told, objection: str = "") -> None:
        self.payload = payload
        self.revoked = False  # the server took it back: whatever comes of it is not wanted any more
        self.delay: float | None = None  # seconds until it shall run again, if it was rescheduled
        self._names = names
        self._tell = tell
        self._objection = objection  # to rescheduling

    def __repr__(self) -> str:
        return f"<Job {self.function} {self.handle}>"

    @property
    def function(self) -> str:
        return arguments.decoded(self._names[0])

    @property
    def handle(self) -> str:
        """What the server calls it; empty where the protocol has no handles."""
        return arguments.decoded(self._names[1])

    @property
    def unique(self) -> str:
        return arguments.decoded(self._names[2])

    def progress(self, numerator: float, denominator: float = 100) -> None:
        """Tell who waits how far it is."""
        self._tell("progress", numerator, denominator)

    def data(self, part: Text) -> None:
        """Send a part of the result ahead."""
        self._tell("data", arguments.encoded(part))

    def warn(self, text: Text) -> None:
        """Send a warning."""
        self._tell("warn", arguments.encoded(text))

    def reschedule(self, delay: Duration) -> None:
        """Have it run again after this time instead of ending it; what the function returns does not count then."""
        if self._objection:
            raise UnsupportedError(self._objection)
        self.delay = max(arguments.seconds(delay), 0.0)


class Outcome(NamedTuple):
    """What came of running a function; plain data, because it may come from another process."""

    result: bytes = b""
    failure: str | None = None  # why it failed, for people
    code: int = 1
    data: bytes = b""  # what the function wants its client to hear of the failure
    delay: float | None = None  # it shall run again after so many seconds
    account: str = ""  # the traceback of a failure
