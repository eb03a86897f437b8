"""Which jobs somebody means."""

from typing import Final

import msgspec

from geartrain.engine.job import LiveJob
from geartrain.errors import SteeringError
from geartrain.model import THROW_AWAY, JobState

STATES: Final = {state.name.lower(): state for state in JobState}
OVER: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})
MOST_LISTED: Final = 1000
_USUALLY_LISTED: Final = 100


class JobFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs that fit everything that is set. Times are those of the end, or of the submission if it is not over."""

    state: str = ""
    function: bytes = b""
    search: str = ""  # part of a handle, a function, a unique key, or of the payload while there is one
    door: str = ""
    since: float = 0.0
    until: float = 0.0  # before; 0: up to now
    limit: int = 0  # 0: as many as is usual
    after: str = ""  # what the page before gave


class Sieve:
    """A filter that was found to make sense, ready to be asked a million times."""

    def __init__(self, wanted: JobFilter) -> None:
        if wanted.state and wanted.state not in STATES:
            raise SteeringError("bad-request", f"there is no state {wanted.state!r}; there are {', '.join(STATES)}")
        if wanted.after and not (wanted.after.isascii() and wanted.after.isdigit()):
            raise SteeringError("bad-request", "`after` is what the page before gave")
        if wanted.limit < 0:
            raise SteeringError("bad-request", "a limit is not below 0")
        self.state = STATES[wanted.state] if wanted.state else None
        self.function = wanted.function
        self.search = wanted.search.encode()
        self.door = wanted.door
        self.since = wanted.since
        self.until = wanted.until
        self.below = int(wanted.after) if wanted.after else 0
        self.limit = min(wanted.limit or _USUALLY_LISTED, MOST_LISTED)
        # Most lists are asked for with none of these.
        self.open = not (self.function or self.search or self.door or self.since or self.until)

    def fits(self, job: LiveJob) -> bool:
        """Whether a job that is not over is meant."""
        if (self.below and job.id >= self.below) or (self.state is not None and job.state is not self.state):
            return False
        if self.open:
            return True
        return (
            (not self.function or job.function == self.function)
            and (not self.door or job.door.removesuffix(THROW_AWAY) == self.door)
            and job.submitted_at >= self.since
            and (not self.until or job.submitted_at < self.until)
            and (not self.search or self._found(job))
        )

    def _found(self, job: LiveJob) -> bool:
        text = self.search
        return text in job.handle or text in job.unique or text in job.function or text in job.payload
