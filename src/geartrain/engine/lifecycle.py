"""The life of a job, as data: which state may follow which.

Everything that changes a job's state goes through `enter`, so a transition that is not in the table cannot
happen; the diagram in docs/architecture.md is generated from it.
"""

from typing import Final

from geartrain.errors import LifecycleError
from geartrain.model import Job, JobState

SCHEDULED: Final = JobState.SCHEDULED
QUEUED: Final = JobState.QUEUED
RUNNING: Final = JobState.RUNNING
DONE: Final = JobState.DONE
FAILED: Final = JobState.FAILED
CANCELLED: Final = JobState.CANCELLED
DEAD: Final = JobState.DEAD
_DONE_NUMBER: Final = 3

TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    SCHEDULED: frozenset({QUEUED, CANCELLED}),
    QUEUED: frozenset({RUNNING, CANCELLED}),
    # Back to its queue when the worker is lost, to the schedule when the worker asks for that.
    RUNNING: frozenset({QUEUED, SCHEDULED, DONE, FAILED, CANCELLED, DEAD}),
    DEAD: frozenset({QUEUED, CANCELLED}),
    DONE: frozenset(),
    FAILED: frozenset(),
    CANCELLED: frozenset(),
}

_ALLOWED: Final = {(before << 3) | after: after for before, followers in TRANSITIONS.items() for after in followers}


def state_number(state: JobState) -> int:
    """A state as an index of tables; the one in which nearly every job ends without asking the enum."""
    return _DONE_NUMBER if state is DONE else int(state)


def enter(job: Job, state: JobState) -> None:
    """Move `job` to `state`; anything that the table does not allow is a bug and says so."""
    before = job.state
    usual = (before is QUEUED and state is RUNNING) or (before is RUNNING and state is DONE)
    if not usual and ((before << 3) | state) not in _ALLOWED:
        raise LifecycleError(f"job {job.handle!r} cannot go from {job.state.name} to {state.name}")
    job.state = state


def diagram() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2", "    [*] --> scheduled", "    [*] --> queued"]
    for before, followers in TRANSITIONS.items():
        lines += [f"    {before.name.lower()} --> {after.name.lower()}" for after in sorted(followers)]
        if not followers:
            lines.append(f"    {before.name.lower()} --> [*]")
    return "\n".join(lines)
