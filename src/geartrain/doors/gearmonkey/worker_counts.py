"""The number of workers of each function, which GearMonkey's programs count themselves.

What a connection has added is removed when it closes. Workers of other doors are counted too.
"""

from collections import Counter
from typing import TYPE_CHECKING

from geartrain.engine.engine import Engine

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection


class WorkerCounts:
    """The values of `count:{FN}`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counted: dict[bytes, dict[GearmonkeyConnection, int]] = {}
        # Connections that pop are workers of the engine as well, and must not count twice.
        self.registered: Counter[bytes] = Counter()

    def value(self, function: bytes) -> int:
        """The number of workers."""
        others = self._engine.worker_count(function) - self.registered[function]
        return others + sum(self._counted.get(function, {}).values())

    def change(self, function: bytes, connection: "GearmonkeyConnection", by: int) -> None:
        """Add to the count of a connection. A negative number is taken from its own count first, then from others'."""
        counted = self._counted.setdefault(function, {})
        if by > 0:
            counted[connection] = counted.get(connection, 0) + by
        for other in [connection, *counted]:
            taken = min(counted.get(other, 0), max(-by, 0))
            by += taken
            counted[other] = counted.get(other, 0) - taken
            if not counted[other]:
                del counted[other]
        if not counted:
            del self._counted[function]

    def reset(self, function: bytes, connection: "GearmonkeyConnection", value: int) -> None:
        """Set the number of workers; what exceeds those of other doors is counted for the connection."""
        self._counted.pop(function, None)
        rest = value - self.value(function)
        if rest > 0:
            self.change(function, connection, rest)

    def forget(self, connection: "GearmonkeyConnection") -> None:
        """Remove the counts of a connection."""
        for function in connection.counted:
            counted = self._counted.get(function)
            if counted is not None:
                counted.pop(connection, None)
                if not counted:
                    del self._counted[function]
