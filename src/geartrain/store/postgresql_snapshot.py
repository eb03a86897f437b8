"""A read-only view of a PostgreSQL store at one moment, for dumps, while servers write to it.

It is one transaction that sees what was committed when it began. Rows are read by cursors on the server, so that
neither end holds more than a few of them. While it is open, PostgreSQL keeps dead rows of the whole database.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

import psycopg
from psycopg import sql

from geartrain.errors import StoreError
from geartrain.model import Job
from geartrain.store import contract, dump, postgresql_records, rows
from geartrain.store import postgresql_rows as packed
from geartrain.store.postgresql_connection import Connection, Target, connect, describe
from geartrain.store.postgresql_ranges import RangeKeeper
from geartrain.store.postgresql_schema import AFTER_JOBS_SINCE, MIGRATIONS, read_layout, read_oldest_layout

LEASE: Final = 10.0  # seconds, by which a connection whose other end is gone is noticed
_ROWS_PER_FETCH: Final = 50  # each may have a payload of many megabytes

Notice = Callable[[str], None]


class PostgresqlSnapshot:
    """A context manager: the view is fixed when it is entered. StoreError says why the store cannot be read."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._statements = postgresql_records.Statements(target.schema)

    def __enter__(self) -> Self:
        with readable_errors(self._target):
            self._connection: Connection = connect(self._target, LEASE)
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(psycopg.Error):
            self._connection.close()

    def require_known_layout(self) -> None:
        """Raise StoreError if the contents cannot be read by this version."""
        with readable_errors(self._target):
            layout = read_layout(self._connection, self._target.schema)
            if not layout:
                raise StoreError(
                    f"{self._target.shown} has no store in schema {self._target.schema!r}; name another one with "
                    "?schema= in the URL"
                )
            if layout < AFTER_JOBS_SINCE:
                raise StoreError(
                    f"{self._target.shown} has layout {layout}; start a server of this version, which brings it to "
                    f"layout {len(MIGRATIONS)}, or use the version that made it"
                )
            if layout > len(MIGRATIONS) < read_oldest_layout(self._connection, self._target.schema):
                raise StoreError(
                    f"{self._target.shown} was migrated by a newer Geartrain (layout {layout}, this one knows "
                    f"{len(MIGRATIONS)}); use that version"
                )

    @property
    def next_id(self) -> int:
        """The first id that no server has."""
        with readable_errors(self._target):
            return RangeKeeper(self._connection, self._target.schema).next_id

    def saved_values(self) -> list[tuple[str, bytes]]:
        """Every value that was saved under a name, by name; slots that were cleared are left out."""
        with readable_errors(self._target):
            statement = self._sql("SELECT name, value FROM {s}.kept WHERE value <> ''")
            return sorted(self._connection.execute(statement).fetchall())

    def jobs(self, notice: Notice) -> Iterator[Job]:
        """Every unfinished job by id; invalid rows are skipped, with a call of `notice`."""
        state = contract.COLUMNS.index("state")
        for row in self._select("jobs", contract.COLUMNS, "id"):
            try:
                values = packed.from_job(row)
                if values[state] != contract.RESERVED:  # else only the unique key of a foreground job
                    yield rows.job(values, Job)
            except rows.BrokenRowError as broken:
                notice(f"row {row[0]} skipped: {broken}")

    def records(self, only_whole: bool = False) -> Iterator[contract.Record]:
        """Every record, the oldest first, with all that is kept of its result.

        With `only_whole`, those of failed jobs that are kept whole.
        """
        where = "records WHERE id IN (SELECT id FROM {s}.failed_jobs)" if only_whole else "records"
        for row in self._select(where, contract.RECORD_COLUMNS, "seq"):
            yield self._with_result(rows.record(packed.from_record(row)))

    def failed_job(self, record: contract.Record) -> Job | None:
        """The job of a record as a whole, if it ended badly and is kept."""
        if record.state == contract.DONE:
            return None
        with readable_errors(self._target):
            (job,) = postgresql_records.failed_jobs(self._connection, self._statements, [record.id], Job, 0)
        return job

    def _with_result(self, record: contract.Record) -> contract.Record:
        if not record.result_size:
            return record
        with readable_errors(self._target):
            row = self._connection.execute(self._statements.rest, (record.id,), binary=True).fetchone()
        return dump.with_result(record, record.result + (row[0] if row is not None else b""))

    def _select(self, table: str, columns: tuple[str, ...], order: str) -> Iterator[tuple[Any, ...]]:
        statement = self._sql(f"SELECT {', '.join(columns)} FROM {{s}}.{table} ORDER BY {order}")
        with readable_errors(self._target), self._connection.cursor(name=f"dump_{order}", binary=True) as cursor:
            cursor.itersize = _ROWS_PER_FETCH
            cursor.execute(statement)
            yield from cursor

    def _sql(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(s=sql.Identifier(self._target.schema))


@contextlib.contextmanager
def readable_errors(target: Target) -> Iterator[None]:
    """Turn PostgreSQL's errors into StoreErrors that name the database."""
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(f"cannot read {target.shown}: {describe(error)}") from None
