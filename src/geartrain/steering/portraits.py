"""From the engine's objects to what people are shown."""

from itertools import islice
from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.state import GIVEN_UP
from geartrain.engine.worker import Worker
from geartrain.model import THROW_AWAY, Attempt, JobState, Priority, Record, unpack_attempts
from geartrain.steering import views
from geartrain.steering.views import text

PRIORITIES: Final = tuple(priority.name.lower() for priority in Priority)
STATES: Final = tuple(state.name.lower() for state in JobState)
LISTED_BYTES: Final = 256  # of a payload or a result, in a list
SHOWN_BYTES: Final = 64 * 1024  # of the same, when one job is asked for; the whole can be had as bytes
_NAMES_SHOWN: Final = 100


def function(engine: Engine, found: Function) -> views.FunctionView:
    """A function."""
    return views.FunctionView(
        text(found.name), found.queued, found.running, found.scheduled, engine.dead_of.get(found.name, 0),
        found.workers, found.paused, found.limits, found.oldest() or None, found.submitted, found.completed,
        found.failed,
    )  # fmt: skip


def worker(found: Worker) -> views.WorkerView:
    """A worker."""
    running = found.running.jobs()
    started = [job.started_at for job in running]
    return views.WorkerView(
        found.number, text(found.name), found.door, found.peer, found.since,
        [text(name) for name in islice(found.abilities, _NAMES_SHOWN)], len(found.abilities), found.idle,
        [text(job.handle) for job in running[:_NAMES_SHOWN]], min(started, default=None),
    )  # fmt: skip


def job(found: LiveJob, longest: int, result: bytes | None = None, finished_at: float | None = None) -> views.JobView:
    """A job that is not over, or has just ended with this result."""
    owner = found.owner
    if found.state is JobState.DEAD and found.trials:
        finished_at = found.trials[-1].ended_at
    progress = found.progress
    return views.JobView(
        found.id, text(found.handle), text(found.function), text(found.unique), STATES[found.state],
        PRIORITIES[found.priority], found.background, found.door.removesuffix(THROW_AWAY), found.submitted_at,
        found.run_at, found.started_at or None, finished_at, found.attempts, found.timeout,
        text(owner.name) if owner is not None else "", owner.door if owner is not None else "",
        progress.numerator if progress is not None else None, progress.denominator if progress is not None else None,
        found.code or (GIVEN_UP if found.state is JobState.DEAD else 0), found.reason,
        text(found.payload, longest), len(found.payload),
        None if result is None else text(result, longest), None if result is None else len(result),
        _trials(found.trials or []),
    )  # fmt: skip


def record(found: Record, longest: int) -> views.JobView:
    """A job that is over. Its payload is not kept, and perhaps not all of its result."""
    return views.JobView(
        found.id, text(found.handle), text(found.function), text(found.unique), STATES[found.state],
        PRIORITIES[found.priority], True, found.door.removesuffix(THROW_AWAY), found.submitted_at, None,
        found.started_at or None, found.finished_at, found.attempts, 0.0, text(found.worker), found.worker_door,
        None, None, found.code, found.reason, None, None, text(found.result, longest), len(found.result),
        _trials(unpack_attempts(found.trials)),
    )  # fmt: skip


def _trials(trials: list[Attempt]) -> list[views.TrialView]:
    return [views.TrialView(*trial[:3], text(trial.worker), trial.why) for trial in trials]
