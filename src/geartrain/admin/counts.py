"""How many there are of what. The server's own jobs, by which it is asked such things, do not count."""

from geartrain.engine.engine import Engine
from geartrain.engine.function import Function


class Counts:
    """Counts over all functions; each is the engine's, less what its residents have."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def queued(self) -> int:
        return self._engine.queued - sum(function.queued for function in self._own())

    @property
    def running(self) -> int:
        return self._engine.running - sum(function.running for function in self._own())

    @property
    def scheduled(self) -> int:
        return self._engine.scheduled - sum(function.scheduled for function in self._own())

    @property
    def submitted(self) -> int:
        return self._engine.submitted - sum(function.total for function in self._own())

    @property
    def completed(self) -> int:
        return self._engine.outcomes.done

    @property
    def failed(self) -> int:
        """Jobs that failed or were given up; one that somebody cancelled is no failure."""
        return self._engine.outcomes.failed + self._engine.outcomes.dead

    @property
    def functions(self) -> int:
        return len(self._engine.functions) - len(self._own())

    def _own(self) -> list[Function]:
        engine = self._engine
        return [engine.functions[name] for name in engine.builtin_workers if name in engine.functions]
