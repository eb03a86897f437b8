"""When the first waiting job of each function is due, for STATUS.

A queued job's time is at the head of its lane. For functions that have nothing but scheduled jobs the schedule has
to be gone through, so what was found is used for a while, the longer the more jobs there are: a client that asks a
hundred times a second must not make the server go through a million jobs each time.
"""

from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function

# Seconds per job on the schedule. Looking at one takes less than a twentieth of this.
_FRESH_FOR: Final = 5e-6


class Calendar:
    """First times, by function."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: dict[bytes, float] = {}
        self._stale_at = 0.0

    def first(self, function: Function) -> float | None:
        """When the first waiting job is due; None if none waits."""
        queued = [job.run_at for lane in function.lanes if (job := lane.first()) is not None]
        if queued:
            return min(queued)
        if not function.scheduled:
            return None
        if self._engine.now >= self._stale_at or function.name not in self._found:
            self._look()
        return self._found.get(function.name, self._engine.now)

    def _look(self) -> None:
        self._stale_at = self._engine.now + len(self._engine.schedule) * _FRESH_FOR
        found = self._found = {}
        for when, job in self._engine.schedule.standing():
            if when < found.get(job.function, float("inf")):
                found[job.function] = when
