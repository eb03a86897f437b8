"""Nodes and ranges in PostgreSQL: joining, looking, fencing, taking, leaving.

No clock of another machine is ever compared with one of ours: the counter of a node moves or it does not.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors, sql

from geartrain.errors import StoreError
from geartrain.store.contract import RESERVED
from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_schema import MIGRATIONS, one
from geartrain.store.shared import (
    FENCED,
    JOINING,
    LEFT,
    NODE_BITS,
    SERVING,
    ClusterView,
    FencedError,
    IdRange,
    Node,
    runs_of,
)

_STANDSTILL_SECONDS: Final = 2.5  # a node that lives commits at least once a second
_POLL_SECONDS: Final = 0.1
# How long the row of a node stays after it is gone. A server that was cut off finds there that it is fenced. Without
# the row it would take the database for one from before it joined, and write jobs again that others have.
_KEPT: Final = "30 days"
_LIVING: Final = f"({SERVING}, {JOINING})"
_GONE: Final = f"({LEFT}, {FENCED})"

IsGone = Callable[[Node], bool]


class NodeInfo(NamedTuple):
    """What a server says of itself."""

    name: str
    machine: str
    version: str


def standstill_seconds(lease: float) -> float:
    """How long a node of the same name must have stood still before a start takes its place.

    It may be cut off and not know it: until its lease is over it assigns jobs.

    >>> standstill_seconds(10.0)
    10.0
    """
    return max(_STANDSTILL_SECONDS, lease)


def lock_joining(connection: Connection, schema: str) -> None:
    """Let no other server become a node before this transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('geartrain join ' || %s, 0))", (schema,))


class NodeTable:
    """The tables `nodes` and `ranges` of one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        columns = (
            "n.id, n.name, n.link, n.machine, n.version, n.layout, n.state, n.leader, n.draining, n.seen, n.batch, "
            "extract(epoch FROM n.started)::float8, extract(epoch FROM clock_timestamp() - n.beat)::float8"
        )
        has_range = "EXISTS (SELECT 1 FROM {s}.ranges r WHERE r.node = n.id)"
        self._nodes = self._sql(
            f"SELECT {columns} FROM {{s}}.nodes n WHERE n.state IN {_LIVING} OR {has_range} ORDER BY n.id"
        )
        self._named = self._sql(f"SELECT {columns} FROM {{s}}.nodes n WHERE n.name = %s AND n.state IN {_LIVING}")
        self._orphans = self._sql(
            "SELECT count(*) FROM {s}.ranges r LEFT JOIN {s}.nodes n ON n.id = r.node "
            f"WHERE n.id IS NULL OR n.state IN {_GONE}"
        )
        self._version = self._sql("SELECT value FROM {s}.meta WHERE name = 'kept'")
        self._values = self._sql("SELECT name, value FROM {s}.kept WHERE version > %s")
        self._insert = self._sql(
            "INSERT INTO {s}.nodes (name, link, machine, version, layout, state, leader) "
            f"SELECT %s, '', %s, %s, {len(MIGRATIONS)}, CASE WHEN alone THEN {SERVING} ELSE {JOINING} END, alone "
            f"FROM (SELECT NOT EXISTS (SELECT 1 FROM {{s}}.nodes WHERE state IN {_LIVING}) AS alone) "
            "AS others RETURNING id, state, ctid::text"
        )
        self._insert_range = self._sql("INSERT INTO {s}.ranges VALUES (%s, %s, %s)")
        self._new_range = self._sql(
            "INSERT INTO {s}.ranges SELECT n << %s, (n + 1) << %s, %s "
            "FROM nextval(pg_get_serial_sequence('{t}.nodes', 'id')) AS n RETURNING low"
        )
        self._accuse = self._sql(
            f"UPDATE {{s}}.nodes SET state = {FENCED}, leader = false "
            f"WHERE id = %s AND batch = %s AND state IN {_LIVING}"
        )
        self._fence = self._sql(
            f"UPDATE {{s}}.nodes SET state = {FENCED}, leader = false WHERE id = %s AND state IN {_LIVING}"
        )
        self._holder = self._sql(
            "SELECT l.pid FROM {s}.nodes n JOIN pg_locks l ON l.locktype = 'transactionid' "
            "AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid = n.xmax WHERE n.id = %s"
        )
        self._serve = self._sql(
            f"UPDATE {{s}}.nodes SET state = {SERVING}, link = %s WHERE id = %s AND state IN {_LIVING}"
        )
        self._lead = self._sql(
            f"UPDATE {{s}}.nodes SET leader = true WHERE id = %s AND state = {SERVING} "
            f"AND NOT EXISTS (SELECT 1 FROM {{s}}.nodes WHERE leader AND state = {SERVING})"
        )
        self._leads = self._sql(f"SELECT leader AND state = {SERVING} FROM {{s}}.nodes WHERE id = %s")
        self._orphan = self._sql(
            "SELECT r.low, r.high FROM {s}.ranges r LEFT JOIN {s}.nodes n ON n.id = r.node "
            f"WHERE n.id IS NULL OR n.state IN {_GONE} ORDER BY r.low LIMIT 1 FOR UPDATE OF r SKIP LOCKED"
        )
        self._is_orphan = self._sql(
            "SELECT EXISTS (SELECT 1 FROM {s}.ranges r LEFT JOIN {s}.nodes n ON n.id = r.node "
            f"WHERE r.low = %s AND (n.id IS NULL OR n.state IN {_GONE}))"
        )
        self._cut = self._sql("SELECT id FROM {s}.jobs WHERE id >= %s AND id < %s ORDER BY id OFFSET %s LIMIT 1")
        self._free_keys = self._sql(f"DELETE FROM {{s}}.jobs WHERE id >= %s AND id < %s AND state = {RESERVED}")
        self._has_jobs = self._sql("SELECT EXISTS (SELECT 1 FROM {s}.jobs WHERE id >= %s AND id < %s)")
        self._drop_range = self._sql("DELETE FROM {s}.ranges WHERE low = %s")
        self._take_range = self._sql("UPDATE {s}.ranges SET node = %s WHERE low = %s")
        self._cut_range = self._sql("UPDATE {s}.ranges SET low = %s WHERE low = %s")
        self._forget = self._sql(
            f"DELETE FROM {{s}}.nodes n WHERE n.state IN {_GONE} AND n.beat < clock_timestamp() - interval '{_KEPT}' "
            "AND NOT EXISTS (SELECT 1 FROM {s}.ranges r WHERE r.node = n.id)"
        )
        # Locked rows are left to whoever has them: that transaction removes them too, and two of these do not wait
        # for each other.
        self._forget_locks = self._sql(
            "DELETE FROM {s}.locks WHERE (name, job) IN (SELECT l.name, l.job FROM {s}.locks l WHERE NOT EXISTS "
            f"(SELECT 1 FROM {{s}}.nodes n WHERE n.id = l.node AND n.state IN {_LIVING}) FOR UPDATE SKIP LOCKED)"
        )
        self._leave = self._sql(
            f"UPDATE {{s}}.nodes SET state = {LEFT}, leader = false WHERE id = %s AND state IN {_LIVING}"
        )
        self._drain = self._sql(f"UPDATE {{s}}.nodes SET draining = true WHERE name = %s AND state IN {_LIVING}")
        self._counter = self._sql("SELECT batch, state FROM {s}.nodes WHERE id = %s")
        self._own_ranges = self._sql("SELECT low, high FROM {s}.ranges WHERE node = %s ORDER BY low")
        self._ranges_in = self._sql("SELECT low, high FROM {s}.ranges WHERE high > %s AND low < %s ORDER BY low")
        self._lock_ranges = self._sql(
            "SELECT low, high, node FROM {s}.ranges WHERE high > %s AND low < %s ORDER BY low FOR UPDATE"
        )
        self._reinsert = self._sql(
            "INSERT INTO {s}.nodes (id, name, link, machine, version, layout, state, batch) "
            f"OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, %s, {len(MIGRATIONS)}, {SERVING}, 0)"
        )
        self._advance = self._sql(
            "SELECT setval(pg_get_serial_sequence('{t}.nodes', 'id'), "
            "greatest(%s, (SELECT coalesce(max(id), 0) FROM {s}.nodes)))"
        )

    def _sql(self, text: str) -> sql.Composed:
        identifier = sql.Identifier(self._schema)
        # `pg_get_serial_sequence` takes the name of the table as text.
        quoted = '"' + self._schema.replace('"', '""').replace("'", "''") + '"'
        return sql.SQL(text.replace("{t}", quoted.replace("{", "{{").replace("}", "}}"))).format(s=identifier)

    def join(self, connection: Connection, info: NodeInfo, lease: float, is_gone: IsGone) -> tuple[int, int, str]:
        """Become a node; return its number, its state and the place of its row.

        A node of the same name is an earlier start of this server. It is fenced if it does not live any more.
        """
        self._fence_namesake(connection, info.name, lease, is_gone)
        with connection.transaction():
            lock_joining(connection, self._schema)
            if connection.execute(self._named, (info.name,)).fetchone() is not None:
                raise StoreError(_taken(info.name))
            id, state, place = one(connection.execute(self._insert, (info.name, info.machine, info.version)))
            connection.execute(self._insert_range, (id << NODE_BITS, (id + 1) << NODE_BITS, id))
        return id, state, place

    def _fence_namesake(self, connection: Connection, name: str, lease: float, is_gone: IsGone) -> None:
        row = connection.execute(self._named, (name,)).fetchone()
        if row is None:
            return
        node = Node(*row)
        deadline = time.monotonic() + standstill_seconds(lease)
        while not is_gone(node) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            row = connection.execute(self._named, (name,)).fetchone()
            if row is None:
                return
            if row[0] != node.id or Node(*row).batch != node.batch:
                raise StoreError(_taken(name))
        if not self.accuse(connection, node, impatient=True):
            raise StoreError(_taken(name))

    def look(self, connection: Connection, version: int) -> ClusterView:
        """Read the nodes, the number of orphan ranges, and values that were saved after a version."""
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            nodes = [Node(*row) for row in connection.execute(self._nodes)]
            orphans = one(connection.execute(self._orphans))[0]
            newest = one(connection.execute(self._version))[0]
            values = dict(connection.execute(self._values, (version,)).fetchall()) if newest > version else {}
        return ClusterView(nodes, orphans, newest, values)

    def accuse(self, connection: Connection, node: Node, impatient: bool = False) -> bool:
        """Fence a node unless its counter has moved; whether it is fenced.

        If its row is locked, the node hangs inside a transaction that PostgreSQL waits for, where no timeout helps
        while it waits for the rows of a COPY: the backend that holds it is terminated. Its server has stood still for
        as long as it takes to be accused.
        """
        return bool(self._update_locked(connection, node.id, self._accuse, (node.id, node.batch), impatient))

    def fence_named(self, connection: Connection, name: str) -> bool:
        """Fence the node of that name, whether it lives or not; whether there is one."""
        row = connection.execute(self._named, (name,)).fetchone()
        if row is None:
            return False
        id = row[0]
        fenced = self._update_locked(connection, id, self._fence, (id,), impatient=True)
        if fenced is None:
            raise StoreError(f"server {name!r} could not be fenced: its row in the table nodes stays locked; try again")
        return fenced > 0

    def _update_locked(
        self, connection: Connection, node: int, statement: sql.Composed, values: tuple[int, ...], impatient: bool
    ) -> int | None:
        """Change a node's row, if need be by ending the transaction that has locked it; None if it stays locked."""
        for _ in range(2):
            try:
                with connection.transaction():
                    connection.execute("SET LOCAL lock_timeout = '500ms'")
                    return connection.execute(statement, values).rowcount
            except errors.LockNotAvailable:
                holder = connection.execute(self._holder, (node,)).fetchone()
                if holder is None:
                    continue
                connection.execute("SELECT pg_terminate_backend(%s)", holder)
                if impatient:
                    time.sleep(_POLL_SECONDS)
        return None

    def serve(self, connection: Connection, node: int, link: str) -> None:
        if connection.execute(self._serve, (link, node)).rowcount != 1:
            raise FencedError(f"node {node} is fenced")

    def lead(self, connection: Connection, node: int) -> bool:
        try:
            connection.execute(self._lead, (node,))
        except errors.UniqueViolation:  # another one was quicker
            return False
        row = connection.execute(self._leads, (node,)).fetchone()
        return row is not None and bool(row[0])

    def take(self, connection: Connection, node: int, most_jobs: int) -> IdRange | None:
        """Take an orphan range, or its first part; within a transaction that has passed the fence."""
        while (ids := self._lock_orphan(connection)) is not None:
            cut = connection.execute(self._cut, (ids.low, ids.high, most_jobs)).fetchone()
            taken = IdRange(ids.low, cut[0]) if cut is not None else ids
            connection.execute(self._free_keys, taken)
            if cut is not None:
                connection.execute(self._cut_range, (cut[0], ids.low))
                connection.execute(self._insert_range, (ids.low, cut[0], node))
                return IdRange(ids.low, cut[0])
            if one(connection.execute(self._has_jobs, ids))[0]:
                connection.execute(self._take_range, (node, ids.low))
                return ids
            connection.execute(self._drop_range, (ids.low,))
        connection.execute(self._forget_locks)
        connection.execute(self._forget)
        return None

    def _lock_orphan(self, connection: Connection) -> IdRange | None:
        """Lock an orphan range that nobody else has locked.

        If another server has taken a range since the statement began, PostgreSQL compares the new row of the range with
        the old row of its node. They do not match, which looks like a range without a node. So ask again: from now on
        nobody changes the range.
        """
        while (row := connection.execute(self._orphan).fetchone()) is not None:
            if one(connection.execute(self._is_orphan, (row[0],)))[0]:
                return IdRange(*row)
        return None

    def new_range(self, connection: Connection, node: int) -> int:
        """Begin another range of ids; return its first id."""
        low: int = one(connection.execute(self._new_range, (NODE_BITS, NODE_BITS, node)))[0]
        return low

    def own_ranges(self, connection: Connection, node: int) -> list[IdRange]:
        return [IdRange(*row) for row in connection.execute(self._own_ranges, (node,))]

    def cover(self, connection: Connection, node: int, ids: IdRange) -> None:
        """Give a node those of these ids that are in no range: the database does not know of that range any more."""
        known = [IdRange(*row) for row in connection.execute(self._ranges_in, ids)]
        for part in ids.parts_outside(known):
            connection.execute(self._insert_range, (*part, node))

    def claim(self, connection: Connection, node: int, ids: Iterable[int]) -> None:
        """Take the ranges of some ids out of those of other nodes, which do not have these jobs."""
        runs = list(runs_of(ids))
        if not runs:
            return
        for low, high, home in connection.execute(self._lock_ranges, (runs[0].low, runs[-1].high)).fetchall():
            around = IdRange(low, high)
            own = [part for run in runs if (part := run.part_in(around)) is not None]
            if own and home != node:
                connection.execute(self._drop_range, (low,))
                for part in around.parts_outside(own):
                    connection.execute(self._insert_range, (*part, home))
                for part in own:
                    connection.execute(self._insert_range, (*part, node))

    def leave(self, connection: Connection, node: int) -> None:
        connection.execute(self._leave, (node,))

    def ask_to_drain(self, connection: Connection, name: str) -> bool:
        return connection.execute(self._drain, (name,)).rowcount > 0

    def counter(self, connection: Connection, node: int) -> tuple[int, int] | None:
        """The number of a node's last commit, and its state; None if there is no such node."""
        row: Any = connection.execute(self._counter, (node,)).fetchone()
        return None if row is None else (row[0], row[1])

    def reinsert(self, connection: Connection, node: int, info: NodeInfo, ids: IdRange) -> None:
        """Write the row of a node again that a database which went back in time does not have."""
        with connection.transaction():
            connection.execute(self._reinsert, (node, info.name, "", info.machine, info.version))
            connection.execute(self._insert_range, (*ids, node))
            connection.execute(self._advance, (node,))


def _taken(name: str) -> str:
    return f"a server named {name!r} is running in this cluster; give this one another name with --node-name"


def is_lost(error: psycopg.Error) -> bool:
    """Whether an error means that the connection, or the server behind it, is not there at the moment."""
    state = error.sqlstate or ""
    # 08: connection; 57P: shutdown, crash or start of the server; 53: too few resources; 25006: a standby.
    return (
        isinstance(error, psycopg.OperationalError) and (not state or state[:2] in ("08", "53") or state[:3] == "57P")
    ) or (state == "25006")
