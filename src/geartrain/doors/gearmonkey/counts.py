"""How many workers each function has, for roll calls.

What a connection has counted up is undone when it ends. Workers of other doors count by themselves.
"""

from collections import Counter
from typing import TYPE_CHECKING

from geartrain.engine.engine import Engine

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection


class Counts:
    """The values of `count:{FN}`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counted: dict[bytes, dict[GearmonkeyConnection, int]] = {}
        # Connections that pop are workers to the engine as well, and must not count twice.
        self.enrolled: Counter[bytes] = Counter()

    def value(self, function: bytes) -> int:
        """How many there are."""
        others = self._engine.worker_count(function) - self.enrolled[function]
        return others + sum(self._counted.get(function, {}).values())

    def change(self, function: bytes, connection: "GearmonkeyConnection", by: int) -> None:
        """A connection counts up or down. Down it uses up its own count first, then others', and then nothing."""
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
        """Somebody says how many there are; as much of it as other doors do not have is that connection's."""
        self._counted.pop(function, None)
        rest = value - self.value(function)
        if rest > 0:
            self.change(function, connection, rest)

    def forget(self, connection: "GearmonkeyConnection") -> None:
        """A connection has ended."""
        for function in connection.counted:
            counted = self._counted.get(function)
            if counted is not None:
                counted.pop(connection, None)
                if not counted:
                    del self._counted[function]
