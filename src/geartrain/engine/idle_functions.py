"""Forgets functions that nothing has used for a while, so that names which peers make up do not gather.

Nothing is noted when a function is used, because that would cost something for every job. Instead, all functions are
visited several times per period, a slice at a time. A function is forgotten when it was unused at every visit of one
period and no job of it ended in between.
"""

from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.interfaces import Timer

_ROUNDS_PER_PERIOD: Final = 4
_SHORTEST_INTERVAL: Final = 0.1  # seconds between two rounds
_SLICE: Final = 1000  # functions per visit
_SLICE_SECONDS: Final = 0.02  # between two slices of a round


class IdleFunctions(Timer):
    """The visits to all functions of an engine."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self._names: list[bytes] = []  # those that this round has yet to visit
        self.at = engine.now + self._interval()

    def fire(self, now: float) -> None:
        """Visit the next slice. If the clock was moved back, the next round begins one interval from there."""
        if now < self.at:
            self.at = min(self.at, now + self._interval())
            return
        period = self._engine.policy.forget_functions_after
        if period and not self._names:
            self._names = list(self._engine.functions)
        for name in self._names[-_SLICE:]:
            function = self._engine.functions.get(name)
            if function is not None:
                self._visit(function, now, period)
        del self._names[-_SLICE:]
        self.at = now + (_SLICE_SECONDS if self._names else self._interval())

    def _visit(self, function: Function, now: float, period: float) -> None:
        ended = function.outcomes.total
        if not self._engine.is_unused(function):
            function.unused_since = 0.0
        elif not 0.0 < function.unused_since <= now or function.ended_before != ended:
            function.unused_since = now
            function.ended_before = ended
        elif now - function.unused_since >= period:
            self._engine.forget(function)

    def _interval(self) -> float:
        return max(self._engine.policy.forget_functions_after / _ROUNDS_PER_PERIOD, _SHORTEST_INTERVAL)
