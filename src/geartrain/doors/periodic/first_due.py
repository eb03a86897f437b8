"""The time at which the first waiting job of each function is due, for STATUS.

The first queued job of a function is at the head of its queues. For functions that have only scheduled jobs the
schedule is read in order of time until each of them has been found, which is soon, unless the jobs of one come after
very many jobs of others. Then the whole schedule is read, and the result is used for a while: a client that asks a
hundred times a second must not make the server read a million jobs each time.
"""

import itertools
from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function

_ORDERED_STEPS: Final = 5_000  # jobs read in order; each costs about as much as two out of order
# Seconds per scheduled job for which the result of reading all of them is used. Reading one takes a tenth of it.
_VALID_PER_JOB: Final = 5e-6


class FirstDueTimes:
    """The first due time of each function."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._scheduled: dict[bytes, float] = {}  # by function: when its first scheduled job is due
        self._valid_until = 0.0

    def of(self, function: Function) -> float | None:
        """When the first waiting job is due; None if none waits."""
        queued = [job.run_at for queue in function.queues if (job := queue.first()) is not None]
        if queued:
            return min(queued)
        if not function.scheduled:
            return None
        return self._scheduled.get(function.name, self._engine.now)

    def refresh(self) -> None:
        """Read the schedule, unless the last result is still valid."""
        missing = {function.name for function in self._engine.functions.values() if function.scheduled}
        if self._engine.now < self._valid_until and missing <= self._scheduled.keys():
            return
        first_times: dict[bytes, float] = {}
        schedule = self._engine.schedule
        for when, job in itertools.islice(schedule.soonest_first(), _ORDERED_STEPS):
            if job.function not in first_times:
                first_times[job.function] = when
                if len(first_times) == len(missing):
                    break
        if len(first_times) < len(missing):
            for when, job in schedule.entries():
                if when < first_times.get(job.function, float("inf")):
                    first_times[job.function] = when
            self._valid_until = self._engine.now + len(schedule) * _VALID_PER_JOB
        self._scheduled = first_times
