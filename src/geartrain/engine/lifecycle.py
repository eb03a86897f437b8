"""The lifecycle of a job as data: which state may follow which.

Every change of state goes through `enter`, which refuses a transition that is not in the table. The diagram in
docs/architecture.md is generated from the table.
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
EXPIRED: Final = JobState.EXPIRED
RESERVING: Final = JobState.RESERVING
BLOCKED: Final = JobState.BLOCKED
_DONE_NUMBER: Final = 3
ENDED: Final = frozenset({DONE, FAILED, CANCELLED, EXPIRED})

TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    # Back to where it was retried from when another server has its key.
    RESERVING: frozenset({QUEUED, SCHEDULED, BLOCKED, CANCELLED, EXPIRED, DEAD, FAILED}),
    # A workflow ends when its members have, without a worker.
    BLOCKED: frozenset({QUEUED, SCHEDULED, DONE, FAILED, CANCELLED, EXPIRED}),
    SCHEDULED: frozenset({QUEUED, CANCELLED, EXPIRED}),
    QUEUED: frozenset({RUNNING, CANCELLED, EXPIRED}),
    # Back to the queue when the worker is lost, to the schedule when the worker reschedules it.
    RUNNING: frozenset({QUEUED, SCHEDULED, DONE, FAILED, CANCELLED, DEAD}),
    DEAD: frozenset({QUEUED, CANCELLED}),
    DONE: frozenset(),
    # To blocked with a workflow that is retried.
    FAILED: frozenset({QUEUED, BLOCKED}),
    CANCELLED: frozenset({BLOCKED}),
    EXPIRED: frozenset({BLOCKED}),
}

_ALLOWED: Final = {(before << 4) | after: after for before, followers in TRANSITIONS.items() for after in followers}


def state_number(state: JobState) -> int:
    """Return the number of a state. DONE, by far the most frequent, takes a shortcut past the enum.

    >>> state_number(JobState.DONE), state_number(JobState.FAILED)
    (3, 4)
    """
    return _DONE_NUMBER if state is DONE else int(state)


def enter(job: Job, state: JobState) -> None:
    """Change the state of `job`; raise LifecycleError if the table does not allow it, which is a bug."""
    before = job.state
    frequent = (before is QUEUED and state is RUNNING) or (before is RUNNING and state is DONE)
    if not frequent and ((before << 4) | state) not in _ALLOWED:
        raise LifecycleError(f"job {job.handle!r} cannot go from {job.state.name} to {state.name}")
    job.state = state


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = [
        "stateDiagram-v2",
        "    [*] --> scheduled",
        "    [*] --> queued",
        "    [*] --> reserving",
        "    [*] --> blocked",
    ]
    for before, followers in TRANSITIONS.items():
        lines += [f"    {before.name.lower()} --> {after.name.lower()}" for after in sorted(followers)]
        if before in ENDED:
            lines.append(f"    {before.name.lower()} --> [*]")
    return "\n".join(lines)
