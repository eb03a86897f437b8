"""Where the ids of loaded jobs belong: each must be in a range that no server has, so that one takes them over.

Ids of other kinds of stores are below those of all nodes. A dump of another PostgreSQL store has numbers of nodes that
this one may have used as well, or would use next: they are skipped from then on.
"""

from typing import Any, Final, NamedTuple

from psycopg import sql

from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_schema import FIRST_NODE, one
from geartrain.store.shared import JOINING, NODE_BITS, SERVING

_NOBODY: Final = 0  # as the node of a range


class OwnedRange(NamedTuple):
    """Ids from `low` to below `high`, of a server that is running."""

    low: int
    high: int
    name: str  # of the server

    @property
    def is_in_use(self) -> bool:
        """Whether the server gives out ids of this range. It took over those of other stores."""
        return self.low >= FIRST_NODE << NODE_BITS


class RangeKeeper:
    """The ranges of one schema, within the transaction that loads a dump."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def skip_numbers(self, highest_id: int) -> None:
        """Let the nodes of servers that start later have numbers above that of this id."""
        number = highest_id >> NODE_BITS
        if number < FIRST_NODE:
            return
        table = sql.Identifier(self._schema, "nodes").as_string(self._connection)
        self._execute(
            "SELECT setval(sequence, %s) FROM (SELECT pg_get_serial_sequence(%s, 'id')::regclass AS sequence) AS s "
            "WHERE coalesce(pg_sequence_last_value(sequence), 0) < %s",
            (number, table, number),
        )

    @property
    def next_id(self) -> int:
        """The first id that no server has."""
        table = sql.Identifier(self._schema, "nodes").as_string(self._connection)
        row = one(self._execute("SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, 'id')::regclass)", (table,)))
        return int((row[0] or FIRST_NODE - 1) + 1) << NODE_BITS

    def running(self) -> list[str]:
        """The names of the servers that are running, or that died and were not fenced yet."""
        statement = f"SELECT name FROM {{s}}.nodes WHERE state IN ({SERVING}, {JOINING}) ORDER BY id"
        return [row[0] for row in self._execute(statement)]

    def owned(self) -> list[OwnedRange]:
        """The ranges of servers that are running. From now on until the transaction ends, nobody takes over others."""
        self._execute("SELECT FROM {s}.ranges FOR UPDATE")  # takers skip what is locked
        answer = self._execute(
            "SELECT r.low, r.high, n.name FROM {s}.ranges r JOIN {s}.nodes n ON n.id = r.node "
            f"WHERE n.state IN ({SERVING}, {JOINING})"
        )
        return [OwnedRange(*row) for row in answer]

    def cover(self, table: str) -> None:
        """Add ranges that nobody has for the ids in a table that are in no range."""
        known = [(row[0], row[1]) for row in self._execute("SELECT low, high FROM {s}.ranges ORDER BY low")]
        low = 0
        for next_low, next_high in (*known, (2**63 - 1, 0)):
            while low < next_low:
                begin = self._cover_gap(table, low, next_low)
                if begin is None:
                    break
                low = begin
            low = max(next_high, low)

    def _cover_gap(self, table: str, low: int, high: int) -> int | None:
        """Cover the first ids in a gap, up to the end of their block; return that end, or None if there are no ids."""
        first = one(self._execute(f"SELECT min(id) FROM pg_temp.{table} WHERE id >= %s AND id < %s", (low, high)))[0]
        if first is None:
            return None
        end = min(((first >> NODE_BITS) + 1) << NODE_BITS, high)
        last = one(self._execute(f"SELECT max(id) FROM pg_temp.{table} WHERE id >= %s AND id < %s", (first, end)))[0]
        self._execute("INSERT INTO {s}.ranges VALUES (%s, %s, %s)", (first, last + 1, _NOBODY))
        return int(end)

    def _execute(self, text: str, values: tuple[Any, ...] = ()) -> Any:
        return self._connection.execute(sql.SQL(text).format(s=sql.Identifier(self._schema)), values or None)
