"""What a check of a PostgreSQL store looks at."""

from collections.abc import Callable
from typing import Any, NamedTuple

from psycopg import sql

from geartrain.maintenance.doctor.finding import Check, Finding
from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_schema import one


class Database(NamedTuple):
    """A connection, and the schema of the store."""

    connection: Connection
    schema: str

    def query(self, statement: str, *values: Any) -> Any:
        """A cursor; `{s}` in the statement stands for the schema."""
        return self.connection.execute(sql.SQL(statement).format(s=sql.Identifier(self.schema)), values or None)

    def row(self, statement: str, *values: Any) -> Any:
        """The only row of an answer."""
        return one(self.query(statement, *values))


DatabaseCheck = Callable[[Database, Check], Finding]
