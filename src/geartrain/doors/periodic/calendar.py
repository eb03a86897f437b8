"""When the first waiting job of each function is due, for STATUS.

A queued job's time is at the head of its lane. For functions that have nothing but scheduled jobs the schedule has
to be gone through, so what was found is used for a moment: a client that asks a hundred times a second must not
make the server go through a million jobs each time.
"""

from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function

_FRESH_FOR: Final = 1.0


class Calendar:
    """First times, by function."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: dict[bytes, float] = {}
        self._found_at = -_FRESH_FOR

    def first(self, function: Function) -> float | None:
        """When the first waiting job is due; None if none waits."""
        queued = [job.run_at for lane in function.lanes if (job := lane.first()) is not None]
        if queued:
            return min(queued)
        if not function.scheduled:
            return None
        if self._engine.now - self._found_at >= _FRESH_FOR:
            self._look()
        return self._found.get(function.name, self._engine.now)

    def _look(self) -> None:
        self._found_at = self._engine.now
        found = self._found = {}
        for when, job in self._engine.schedule.standing():
            if when < found.get(job.function, float("inf")):
                found[job.function] = when
