"""Dropping a function with its waiting jobs, a slice at a time, since there may be a million of them.

Other verbs come between two slices. Jobs that are submitted after the beginning stay, and the function with them. If a
worker offers the function meanwhile, or if another drop removes it, the rest is left alone. A job that was there at the
beginning and is replaced before its slice comes is cancelled too: it has the same id.
"""

from typing import Final

from geartrain.engine.engine import Engine

_SLICE: Final = 256  # jobs


class FunctionDrop:
    """One drop, from beginning to end."""

    def __init__(self, engine: Engine, name: bytes) -> None:
        self._engine = engine
        self._name = name
        self._function = engine.functions.get(name)
        self._last_id = engine.next_id - 1
        self._jobs = engine.jobs.walk()

    def step(self) -> bool:
        """Cancel the jobs of the next slice; return whether the drop has ended."""
        engine, function = self._engine, self._function
        if function is None or function.workers or engine.functions.get(self._name) is not function:
            return True
        for _ in range(_SLICE):
            job = next(self._jobs, None)
            if job is None or function.total == function.running:
                engine.drop(self._name)
                return True
            if job.function == self._name and job.owner is None and job.id <= self._last_id:
                engine.cancel(job, "function dropped")
        return False
