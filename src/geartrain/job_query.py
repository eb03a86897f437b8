"""JobQuery: which jobs a list, a bulk action or a search of the archive is about.

HTTP, the control function, the command line, the archive of the running server and the reader of a store's file all
use this one class. Stores have a narrower type of their own, `store.contract.Query`, because they look up handles and
order by columns, and know nothing of jobs that have not ended.
"""

import dataclasses
import enum
from typing import Final

from geartrain.errors import AdminError
from geartrain.failure_reasons import reason_group
from geartrain.model import Job, JobState


class StateName(enum.StrEnum):
    """The states of a job by name, in the order of the life of a job."""

    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"
    EXPIRED = "expired"


STATES: Final = {state.name.lower(): state for state in JobState}
_POSITION_DIGITS: Final = 18
PLACES: Final = "c"  # what the `after` of a page of a cluster begins with
_WITH_REASON: Final = frozenset({JobState.FAILED, JobState.DEAD})
ENDED: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED})


@dataclasses.dataclass(frozen=True, slots=True)
class JobQuery:
    """Jobs that match every field that is set, newest first.

    Times are compared with the end of a job, or with its submission if it has not ended.
    """

    state: JobState | None = None
    function: bytes = b""
    search: bytes = b""  # part of a handle, a function, a unique key, a payload or a reason, as far as there is one
    door: str = ""  # the protocol that submitted it
    reason: str = ""  # a group of reasons (`failure_reasons.py`), of jobs that failed or are dead
    since: float = 0.0
    until: float = 0.0  # exclusive; 0: now
    limit: int = 0  # 0: the default of whoever answers
    below: int = 0  # only ids below this one; 0: all. `after` of a page is the id of its last job
    least: int = 0  # only ids from this one on
    places: str = ""  # `after` of a page of a cluster, which has a place for each of its servers
    # Most queries set none of these: then `matches` is done after the id and the state.
    unrestricted: bool = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        restricted = self.function or self.search or self.door or self.reason or self.since or self.until
        object.__setattr__(self, "unrestricted", not restricted)

    @classmethod
    def parse(
        cls,
        *,
        state: str = "",
        function: bytes = b"",
        search: str = "",
        door: str = "",
        reason: str = "",
        since: float = 0.0,
        until: float = 0.0,
        limit: int = 0,
        after: str = "",
    ) -> "JobQuery":
        """A query from the values that a person or a program sent; an AdminError says which of them is invalid.

        >>> JobQuery.parse(state="dead", after="17").below
        17
        """
        if state and state not in STATES:
            raise AdminError("bad-request", f"unknown state {state!r}; the states are {', '.join(STATES)}")
        if limit < 0:
            raise AdminError("bad-request", f"limit must not be negative: {limit}")
        has_places = after.startswith(PLACES)
        return cls(
            state=STATES.get(state),
            function=function,
            search=search.encode(),
            door=door,
            reason=reason,
            since=since,
            until=until,
            limit=limit,
            below=0 if has_places else page_position(after),
            places=after if has_places else "",
        )

    def matches(self, job: Job) -> bool:
        """Whether a job that has not ended is meant. Of a cold job, the payload is not searched."""
        if (
            (self.below and job.id >= self.below)
            or (self.least and job.id < self.least)
            or (self.state is not None and job.state is not self.state)
        ):
            return False
        return self.unrestricted or (
            (not self.function or job.function == self.function)
            and (not self.door or job.door == self.door)
            and job.submitted_at >= self.since
            and (not self.until or job.submitted_at < self.until)
            and (not self.search or self._is_in(job))
            and (not self.reason or self.matches_reason(job.state, job.reason))
        )

    def matches_reason(self, state: int, reason: str) -> bool:
        """Whether a job in this state, with this reason, is in the group of reasons; always true without a group."""
        return not self.reason or (state in _WITH_REASON and reason_group(reason) == self.reason)

    def _is_in(self, job: Job) -> bool:
        text = self.search
        if text in job.handle or text in job.unique or text in job.function:
            return True
        payload = job.payload_in_memory
        return payload is not None and text in payload


def page_position(after: str) -> int:
    """The number in the `after` of a page; 0 for the first page."""
    if after and not (after.isascii() and after.isdigit() and len(after) <= _POSITION_DIGITS):
        raise AdminError("bad-request", f"after must be the `after` of the previous page, not {after!r}")
    return int(after) if after else 0
