"""An outbox in an SQLite file.

SQLite has no locks of rows. A relay locks a file beside the database instead, which the kernel unlocks when the relay
ends, however that happens; other relays of the same database wait for it. Statements run in a thread, since they may
have to wait for another writer.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from geartrain.outbox import table
from geartrain.outbox.source import BatchLimits, ClaimedRows, OutboxCounts, OutboxError, OutboxSource, RefusedRow
from geartrain.outbox.table import OutboxRow

_BUSY_SECONDS: Final = 30.0  # to wait for another writer
_LOOK_SECONDS: Final = 0.2  # between two looks at a counter in memory, which changes with each commit of others
_OLDEST: Final = f"SELECT id, length(payload) FROM {table.NAME} WHERE try_at <= ? ORDER BY id LIMIT ?"
_COUNTS: Final = (
    "SELECT count(*), coalesce(sum(refusals > 0), 0), coalesce(? - min(created_at), 0.0),"
    f" coalesce((SELECT refused FROM {table.NAME} WHERE refusals > 0 ORDER BY try_at DESC LIMIT 1), '')"
    f" FROM {table.NAME}"
)


class _OwnRows(ClaimedRows):
    """Rows of an outbox that only this relay reads."""

    def __init__(self, source: "SqliteSource", rows: list[OutboxRow]) -> None:
        self._source = source
        self.rows = rows

    async def settle(self, moved: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        await asyncio.to_thread(self._source.settle, moved, refused)


class SqliteSource(OutboxSource):
    """An outbox in an SQLite file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._lock: int | None = None  # the file that is locked
        self._version = -1  # of the database, as this connection saw it last

    async def open(self) -> None:
        if self._connection is not None:
            return
        with _errors():
            if not os.path.exists(self._path):
                raise OutboxError(f"there is no database {self._path}")
            self._connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )

    @contextlib.asynccontextmanager
    async def claim(self, limits: BatchLimits) -> AsyncIterator[ClaimedRows]:
        rows = await asyncio.to_thread(self._claim, limits) if self._is_alone() else []
        yield _OwnRows(self, rows)

    async def changed(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not await asyncio.to_thread(self._has_changed):
            await asyncio.sleep(min(_LOOK_SECONDS, seconds))

    async def counts(self) -> OutboxCounts:
        with _errors():
            return OutboxCounts(*self._open_connection().execute(_COUNTS, (time.time(),)).fetchone())

    async def create_table(self) -> None:
        with _errors():
            self._open_connection().execute(table.SQLITE_TABLE)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
        self._connection = self._lock = None

    def settle(self, moved: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        """Delete rows that were moved, and note why others were refused."""
        with self._transaction() as connection:
            connection.executemany(f"DELETE FROM {table.NAME} WHERE id = ?", [(id,) for id in moved])
            connection.executemany(
                f"UPDATE {table.NAME} SET refused = ?, refusals = refusals + 1, sends = 0, try_at = ? WHERE id = ?",
                [(row.reason, time.time() + row.delay, row.id) for row in refused],
            )

    def _open_connection(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def _is_alone(self) -> bool:
        """Whether this relay has the lock, or gets it now."""
        if self._lock is not None:
            return True
        lock = os.open(f"{self._path}-outbox.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _claim(self, limits: BatchLimits) -> list[OutboxRow]:
        """Count that the oldest rows are about to be sent, and return them."""
        with _errors():
            due = self._open_connection().execute(_OLDEST, (time.time(), limits.rows)).fetchall()
        ids: list[int] = []
        size = 0
        for id, length in due:
            size += length
            if ids and size > limits.size:
                break
            ids.append(id)
        if not ids:
            return []
        listed = ", ".join(map(str, ids))
        with self._transaction() as connection:
            connection.execute(f"UPDATE {table.NAME} SET sends = sends + 1 WHERE id IN ({listed})")
            rows = connection.execute(f"SELECT {table.SELECTED} FROM {table.NAME} WHERE id IN ({listed}) ORDER BY id")
            return [table.row_of(values) for values in rows]

    def _has_changed(self) -> bool:
        with _errors():
            version: int = self._open_connection().execute("PRAGMA data_version").fetchone()[0]
        changed = version != self._version
        self._version = version
        return changed

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._open_connection()
        with _errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Raise errors of SQLite as ours, with what to do where that is known."""
    try:
        yield
    except sqlite3.Error as error:
        if "no such table" in str(error):
            raise OutboxError(
                f"the database has no table {table.NAME}: run `geartrain outbox create`, or create it in a migration"
            ) from error
        raise OutboxError(f"the database of the outbox: {error}") from error
