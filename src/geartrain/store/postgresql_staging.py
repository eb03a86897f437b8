"""A dump on its way into a PostgreSQL store: temporary tables that hold it until it is known what of it is new.

They belong to the transaction that loads the dump. Nobody else sees them, and no server waits while they are filled.
"""

from collections.abc import Sequence
from typing import Any, Final

from psycopg import sql

from geartrain.model import Job
from geartrain.store import contract, dump
from geartrain.store import postgresql_rows as packed
from geartrain.store.contract import COLUMNS, RECORD_COLUMNS
from geartrain.store.postgresql_commit import KEYED_COLUMNS, KEYED_TYPES, keyed_columns
from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_parameters import Array, insert_columns
from geartrain.store.postgresql_records import RecordTable

JOBS: Final = "staged_jobs"
RECORDS: Final = "staged_records"
RESTS: Final = "staged_rests"
FAILED: Final = "staged_failed"
_TABLES: Final = {JOBS: "jobs", RECORDS: "records", RESTS: "results", FAILED: "failed_jobs"}
_ENTRIES_AT_ONCE: Final = 1000
_BYTES_AT_ONCE: Final = 8 * 1024 * 1024
_INSERT_JOBS: Final = insert_columns(JOBS, KEYED_COLUMNS, KEYED_TYPES)
_INSERT_RECORDS: Final = insert_columns(RECORDS, RECORD_COLUMNS, packed.RECORD_TYPES)
_INSERT_RESTS: Final = insert_columns(RESTS, ("id", "rest"), (packed.INT8, packed.BYTEA))
_INSERT_FAILED: Final = insert_columns(FAILED, COLUMNS, packed.JOB_TYPES)


class Staging:
    """Fills the temporary tables, many rows at a time."""

    def __init__(self, connection: Connection, schema: str, table: RecordTable) -> None:
        self._connection = connection
        self._table = table
        self._jobs: list[tuple[Any, ...]] = []
        self._records: list[contract.Record] = []
        self._failed: list[tuple[Any, ...]] = []
        self._size = 0
        self.values: list[dump.SavedValue] = []
        for name, original in _TABLES.items():
            columns = ", ".join(RECORD_COLUMNS) if name == RECORDS else "*"
            statement = f"CREATE TEMP TABLE {name} ON COMMIT DROP AS SELECT {columns} FROM {{s}}.{original} WHERE false"
            connection.execute(sql.SQL(statement).format(s=sql.Identifier(schema)))

    def add(self, entry: dump.Entry) -> None:
        if isinstance(entry, dump.SavedValue):
            self.values.append(entry)
            return
        if isinstance(entry, Job):
            self._jobs.append(contract.row(entry))
            self._size += len(entry.payload)
        elif isinstance(entry, dump.FailedJob):
            self._records.append(entry.record)
            self._failed.append(contract.row(entry.job))
            self._size += len(entry.record.result) + len(entry.job.payload)
        else:
            self._records.append(entry)
            self._size += len(entry.result)
        if len(self._jobs) + len(self._records) >= _ENTRIES_AT_ONCE or self._size >= _BYTES_AT_ONCE:
            self._flush()

    def finish(self) -> None:
        """Write the rest, and prepare the tables for being joined."""
        self._flush()
        for name in _TABLES:
            self._connection.execute(f"CREATE UNIQUE INDEX ON pg_temp.{name} (id)")
            self._connection.execute(f"ANALYZE pg_temp.{name}")

    def _flush(self) -> None:
        if self._jobs:
            self._connection.execute(_in_temp(_INSERT_JOBS), keyed_columns(self._jobs))
        records, rests = self._table.divide(self._records)
        self._insert(_INSERT_RECORDS, packed.RECORD_TYPES, records)
        self._insert(_INSERT_RESTS, (packed.INT8, packed.BYTEA), rests)
        self._insert(_INSERT_FAILED, packed.JOB_TYPES, self._failed)
        self._jobs, self._records, self._failed, self._size = [], [], [], 0

    def _insert(self, statement: str, types: Sequence[int], rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self._connection.execute(_in_temp(statement), list(map(Array, packed.columns(types, rows))))


def _in_temp(statement: str) -> sql.Composed:
    return sql.SQL(statement).format(s=sql.Identifier("pg_temp"))
