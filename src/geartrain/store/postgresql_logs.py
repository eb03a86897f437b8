"""Logs of jobs in PostgreSQL. Every server adds to those of its jobs; the leader removes them, with the records."""

from collections.abc import Sequence
from typing import Final

from psycopg import sql

from geartrain.store import postgresql_rows as packed
from geartrain.store.contract import extended_log
from geartrain.store.postgresql_budget import Budget
from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_parameters import Array, insert_columns

_TYPES: Final = (packed.INT8, packed.BYTEA)


class LogTable:
    """The table `logs`."""

    def __init__(self, schema: str, most_bytes: int) -> None:
        self.budget = Budget(most_bytes)
        insert = insert_columns("logs", ("id", "log"), _TYPES)
        statements = {
            "save": f"{insert} ON CONFLICT (id) DO UPDATE SET log = excluded.log",
            "delete": "DELETE FROM {s}.logs WHERE id = ANY(%b)",
            "read": "SELECT id, log FROM {s}.logs WHERE id = ANY(%b)",
            "bytes": "SELECT coalesce(sum(octet_length(log)), 0) FROM {s}.logs",
            "oldest": "SELECT id, octet_length(log) FROM {s}.logs ORDER BY id",
        }
        self._sql = {name: sql.SQL(text).format(s=sql.Identifier(schema)) for name, text in statements.items()}

    def add(self, connection: Connection, logs: Sequence[tuple[int, bytes]]) -> None:
        """Add lines to logs, within a transaction, and remove the oldest logs that exceed the limit."""
        before = self._read(connection, sorted({id for id, _ in logs}))
        after = dict(before)
        for id, added in logs:
            after[id] = extended_log(after.get(id, b""), added)
        connection.execute(self._sql["save"], list(map(Array, packed.columns(_TYPES, sorted(after.items())))))
        more = sum(map(len, after.values())) - sum(map(len, before.values()))
        for removed in self.budget.over(connection, more, self._sql["bytes"], self._sql["oldest"]):
            self.remove(connection, removed)

    def remove(self, connection: Connection, ids: Sequence[int]) -> None:
        """Remove the logs of these jobs, within a transaction."""
        connection.execute(self._sql["delete"], [Array.of_ids(ids)])

    def read(self, connection: Connection, id: int) -> bytes:
        """The log of a job; empty if there is none."""
        return self._read(connection, [id]).get(id, b"")

    def _read(self, connection: Connection, ids: Sequence[int]) -> dict[int, bytes]:
        return dict(connection.execute(self._sql["read"], [Array.of_ids(ids)], binary=True).fetchall())
