"""Locks in PostgreSQL: a row for each job that holds one, of any server.

Rows of a node that is gone do not count, and whoever asks for the same lock removes them. All that a server wants at
one time is one call of `change_locks` (`postgresql_schema.py`) and so one transaction, which no stopped server can hold
open.
"""

from collections.abc import Sequence
from typing import Any, Final

from psycopg import sql

from geartrain.model import LockChange, LockUse
from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_schema import one
from geartrain.store.shared import JOINING, SERVING

_LIVING: Final = f"({SERVING}, {JOINING})"


class LockTable:
    """The table `locks` of one schema."""

    def __init__(self, schema: str) -> None:
        self._change = _sql("SELECT {s}.change_locks(%s, %s::bytea[], %s::bigint[], %s::integer[])", schema)
        self._uses = _sql(
            "SELECT l.name, count(*), max(l.most) FROM {s}.locks l JOIN {s}.nodes n ON n.id = l.node "
            f"WHERE l.name = ANY(%s::bytea[]) AND n.state IN {_LIVING} GROUP BY l.name",
            schema,
        )

    def change(self, connection: Connection, node: int, changes: Sequence[LockChange]) -> list[bool]:
        """Make these changes in this order, all or none; for each, whether the job got the lock or released it."""
        names, jobs, limits = map(list, zip(*changes, strict=True))
        granted: list[bool] = one(connection.execute(self._change, (node, names, jobs, limits)))[0]
        return granted

    def uses(self, connection: Connection, names: Sequence[bytes]) -> dict[bytes, LockUse]:
        """The use of those of these locks that a job of a living node holds."""
        rows = connection.execute(self._uses, (list(names),)).fetchall()
        return {bytes(name): LockUse(holders, most) for name, holders, most in rows}


def _sql(text: str, schema: str) -> Any:
    return sql.SQL(text).format(s=sql.Identifier(schema))
