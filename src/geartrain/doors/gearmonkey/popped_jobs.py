"""The jobs that workers of this door run."""

from typing import Final

from geartrain.engine.engine import Engine

_FEW: Final = 1000  # handles, below which nothing is looked for


class PoppedJobs:
    """Their handles. Those of jobs that have left without a word, such as borrowed ones that went home, are swept."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._handles: set[bytes] = set()
        self._sweep_at = _FEW

    def __contains__(self, handle: bytes) -> bool:
        return handle in self._handles

    def __len__(self) -> int:
        return len(self._handles)

    def add(self, handle: bytes) -> None:
        self._handles.add(handle)
        if len(self._handles) > self._sweep_at:
            self._handles = {handle for handle in self._handles if self._engine.find(handle) is not None}
            self._sweep_at = max(2 * len(self._handles), _FEW)

    def discard(self, handle: bytes) -> None:
        self._handles.discard(handle)
