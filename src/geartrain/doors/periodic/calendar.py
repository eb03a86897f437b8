"""When the first waiting job of each function is due, for STATUS.

A queued job's time is at the head of its lane. For functions that have nothing but scheduled jobs the schedule is
walked, soonest first, until each of them has been met; which is soon, unless the jobs of one stand behind very many
of others. Then all of it is gone through, and what was found is used for a while: a client that asks a hundred times
a second must not make the server go through a million jobs each time.
"""

import itertools
from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function

_STEPS: Final = 5_000  # to be walked in order; each costs about as much as two out of order
# How long what was found by going through everything is used: seconds per job. Looking at one takes a tenth of it.
_FRESH_FOR: Final = 5e-6


class Calendar:
    """First times, by function."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: dict[bytes, float] = {}
        self._stale_at = 0.0

    def first(self, function: Function) -> float | None:
        """When the first waiting job is due; None if none waits."""
        queued = [job.run_at for queue in function.queues if (job := queue.first()) is not None]
        if queued:
            return min(queued)
        if not function.scheduled:
            return None
        return self._found.get(function.name, self._engine.now)

    def look(self) -> None:
        """Find the first times anew, unless what is known is fresh."""
        wanted = {function.name for function in self._engine.functions.values() if function.scheduled}
        if self._engine.now < self._stale_at and wanted <= self._found.keys():
            return
        found: dict[bytes, float] = {}
        schedule = self._engine.schedule
        for when, job in itertools.islice(schedule.soonest_first(), _STEPS):
            if job.function not in found:
                found[job.function] = when
                if len(found) == len(wanted):
                    break
        if len(found) < len(wanted):
            for when, job in schedule.entries():
                if when < found.get(job.function, float("inf")):
                    found[job.function] = when
            self._stale_at = self._engine.now + len(schedule) * _FRESH_FOR
        self._found = found
