"""An outbox in PostgreSQL.

A batch takes two transactions. The first counts in `sends` that the rows are about to be sent, and commits. The second
locks them while they are sent, and deletes them. If the relay dies in between, PostgreSQL unlocks the rows with its
connection, and `sends` says that they are in doubt. Other relays skip locked rows. One that takes rows between the two
transactions has counted too, so the first one leaves them alone.

A connection of its own listens for new rows. Behind a pooler that does not pass notifications on, rows are found by
looking again after `poll` seconds.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

try:
    import psycopg
    from psycopg import sql
except ImportError as error:
    raise ImportError("an outbox in PostgreSQL needs psycopg 3: pip install 'geartrain[postgresql]'") from error

from geartrain.outbox import table
from geartrain.outbox.source import BatchLimits, ClaimedRows, OutboxCounts, OutboxError, OutboxSource, RefusedRow
from geartrain.outbox.table import OutboxRow

_CONNECT_SECONDS: Final = 10
_OLDEST: Final = sql.SQL(
    f"SELECT id, octet_length(payload) FROM {table.NAME} WHERE try_at <= now()"
    " ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED"
)
_COUNT_SENDS: Final = sql.SQL(f"UPDATE {table.NAME} SET sends = sends + 1 WHERE id = ANY(%s) RETURNING id, sends")
_LOCK: Final = sql.SQL(
    f"SELECT {table.SELECTED} FROM {table.NAME} WHERE id = ANY(%s) ORDER BY id FOR UPDATE SKIP LOCKED"
)
_DELETE: Final = sql.SQL(f"DELETE FROM {table.NAME} WHERE id = ANY(%s)")
_REFUSE: Final = sql.SQL(
    f"UPDATE {table.NAME} SET refused = %s, refusals = refusals + 1, sends = 0,"
    " try_at = now() + make_interval(secs => %s) WHERE id = %s"
)
_COUNTS: Final = sql.SQL(
    "SELECT count(*), count(*) FILTER (WHERE refusals > 0),"
    " coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8,"
    f" coalesce((SELECT refused FROM {table.NAME} WHERE refusals > 0 ORDER BY try_at DESC LIMIT 1), '')"
    f" FROM {table.NAME}"
)

Connection = psycopg.AsyncConnection[tuple[Any, ...]]


class _LockedRows(ClaimedRows):
    """Rows that are locked by the transaction of a connection."""

    def __init__(self, connection: Connection, rows: list[OutboxRow]) -> None:
        self._connection = connection
        self.rows = rows

    async def settle(self, moved: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        with _errors():
            if moved:
                await self._connection.execute(_DELETE, (list(moved),))
            for row in refused:
                await self._connection.execute(_REFUSE, (row.reason, row.delay, row.id))
            await self._connection.commit()


class PostgresqlSource(OutboxSource):
    """An outbox in PostgreSQL, by psycopg 3."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None  # for the rows
        self._listener: Connection | None = None

    async def open(self) -> None:
        with _errors():
            if self._connection is None or self._connection.closed:
                self._connection = await self._connect(autocommit=False)
            if self._listener is None or self._listener.closed:
                self._listener = await self._connect(autocommit=True)
                await self._listener.execute(sql.SQL(f"LISTEN {table.CHANNEL}"))

    @contextlib.asynccontextmanager
    async def claim(self, limits: BatchLimits) -> AsyncIterator[ClaimedRows]:
        connection = self._open_connection()
        try:
            with _errors():
                sends = await self._count_sends(connection, limits)
                rows = await self._lock(connection, sends) if sends else []
            yield _LockedRows(connection, rows)
        finally:
            with contextlib.suppress(psycopg.Error):
                await connection.rollback()

    async def changed(self, seconds: float) -> None:
        assert self._listener is not None
        with _errors():
            async for _ in self._listener.notifies(timeout=seconds, stop_after=1):
                pass

    async def counts(self) -> OutboxCounts:
        connection = self._open_connection()
        with _errors():
            row = await (await connection.execute(_COUNTS)).fetchone()
            await connection.rollback()
        assert row is not None
        return OutboxCounts(*row)

    async def create_table(self) -> None:
        connection = self._open_connection()
        with _errors():
            await connection.execute(sql.SQL(table.POSTGRESQL_TABLE))
            await connection.commit()

    async def close(self) -> None:
        for connection in (self._connection, self._listener):
            if connection is not None:
                await connection.close()
        self._connection = self._listener = None

    async def _connect(self, autocommit: bool) -> Connection:
        # Poolers that give each transaction another connection do not keep prepared statements.
        return await psycopg.AsyncConnection.connect(
            self._url, autocommit=autocommit, prepare_threshold=None, connect_timeout=_CONNECT_SECONDS
        )

    def _open_connection(self) -> Connection:
        assert self._connection is not None
        return self._connection

    @staticmethod
    async def _count_sends(connection: Connection, limits: BatchLimits) -> dict[int, int]:
        """Count that the oldest rows are about to be sent; their counts by id."""
        ids: list[int] = []
        size = 0
        for id, length in await (await connection.execute(_OLDEST, (limits.rows,))).fetchall():
            size += length
            if ids and size > limits.size:
                break
            ids.append(id)
        counted = await (await connection.execute(_COUNT_SENDS, (ids,))).fetchall() if ids else []
        await connection.commit()
        return dict(counted)

    @staticmethod
    async def _lock(connection: Connection, sends: dict[int, int]) -> list[OutboxRow]:
        """Lock these rows, except those that another relay has counted since."""
        selected = await (await connection.execute(_LOCK, (list(sends),))).fetchall()
        rows = [table.row_of(values) for values in selected]
        return [row for row in rows if row.sends == sends[row.id]]


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Raise errors of psycopg as ours, with what to do where that is known."""
    try:
        yield
    except psycopg.errors.UndefinedTable as error:
        raise OutboxError(
            f"the database has no table {table.NAME}: run `geartrain outbox create`, or create it in a migration"
        ) from error
    except psycopg.Error as error:
        raise OutboxError(f"the database of the outbox: {str(error).strip() or type(error).__name__}") from error
