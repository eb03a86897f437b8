"""How many bytes a table of PostgreSQL may have. Other servers add to it too, so its size is counted now and then."""

from collections.abc import Sequence

from psycopg import sql

from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_schema import one


class Budget:
    """How many bytes a table may have, and how many it has."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size: int | None = None  # None: not counted yet

    def over(
        self, connection: Connection, added: int, total: sql.Composed, oldest: sql.Composed
    ) -> Sequence[Sequence[int]]:
        """The ids of the oldest rows that must go, after so many bytes were added: one list, or none."""
        self.size = int(one(connection.execute(total))[0]) if self.size is None else self.size + added
        excess = self.size - self._most
        if excess <= 0:
            return ()
        removed: list[int] = []
        for id, size in connection.execute(oldest):
            if excess <= 0:
                break
            removed.append(id)
            excess -= size
            self.size -= size
        return (removed,)
