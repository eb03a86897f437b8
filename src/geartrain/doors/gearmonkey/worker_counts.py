"""The number of workers of each function, which GearMonkey's programs count themselves.

What a connection has added is removed when it closes. Workers of other doors are counted too.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys
from geartrain.engine.engine import Engine

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.distant_counts import DistantCounts

_MOST_FUNCTIONS: Final = 10_000  # that one connection counts


class WorkerCounts:
    """The values of `count:{FN}`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.most_functions = _MOST_FUNCTIONS
        self.distant: DistantCounts | None = None  # of a server in a cluster
        # By function; a connection is in it, perhaps with 0, from its first change on until it closes.
        self._counted: dict[bytes, dict[GearmonkeyConnection, int]] = {}
        # Connections that pop are workers of the engine as well, and must not count twice.
        self.registered: Counter[bytes] = Counter()

    def unregister(self, function: bytes) -> None:
        """A connection that pops no longer offers a function. The entry of a function that none offers is removed."""
        self.registered[function] -= 1
        if not self.registered[function]:
            del self.registered[function]

    def value(self, function: bytes) -> int:
        """The number of workers, also of those at other servers."""
        distant = self.distant.counted(function) if self.distant is not None else 0
        return self._engine.worker_count(function) + self.beyond_engine(function) + distant

    def beyond_engine(self, function: bytes) -> int:
        """The workers that programs have counted, less those of them that the engine knows."""
        return sum(self._counted.get(function, {}).values()) - self.registered[function]

    def functions(self) -> list[bytes]:
        """Functions whose workers programs have counted."""
        return list(self._counted)

    def exists(self, function: bytes) -> bool:
        """Whether there are workers, or a program has counted some."""
        return function in self._counted or self.value(function) > 0

    def change(self, function: bytes, connection: "GearmonkeyConnection", by: int) -> None:
        """Add to the count of a connection. A negative number is taken from its own count first, then from others'."""
        if function not in connection.counted and len(connection.counted) >= self.most_functions:
            raise keys.refusal(f"a connection can count the workers of {self.most_functions} functions")
        connection.counted.add(function)
        counted = self._counted.setdefault(function, {})
        if by > 0:
            counted[connection] = counted.get(connection, 0) + by
        for other in [connection, *counted]:
            taken = min(counted.get(other, 0), max(-by, 0))
            by += taken
            counted[other] = counted.get(other, 0) - taken

    def reset(self, function: bytes, connection: "GearmonkeyConnection", value: int) -> None:
        """Set the number of workers; what exceeds those of other doors is counted for the connection."""
        self.clear(function)
        self.change(function, connection, max(value - self.value(function), 0))

    def clear(self, function: bytes) -> None:
        """Count only the workers of other doors."""
        self._counted.pop(function, None)

    def forget(self, connection: "GearmonkeyConnection") -> None:
        """Remove the counts of a connection."""
        for function in connection.counted:
            counted = self._counted.get(function)
            if counted is not None:
                counted.pop(connection, None)
                if not counted:
                    del self._counted[function]
