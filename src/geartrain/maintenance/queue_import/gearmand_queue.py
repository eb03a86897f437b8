"""Reads the queues that gearmand keeps: the file of its libsqlite3 plugin, dumps of its SQL tables, and a Redis.

The plugins for SQLite, PostgreSQL, MySQL and Drizzle write the same columns. A row is a background job that has not
ended. The source is opened for reading only.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import apsw

from geartrain.errors import StoreError
from geartrain.maintenance.queue_import import gearmand_redis, queued_job, sql_dump
from geartrain.maintenance.queue_import.queued_job import QueuedJob
from geartrain.model import Priority
from geartrain.store import schema

COLUMNS: Final = ("unique_key", "function_name", "priority", "data")
RUN_AT: Final = "when_to_run"  # a time; older versions of gearmand do not have the column
_BUSY_MILLISECONDS: Final = 5000
_MOVE: Final = "start gearmand with it and use `geartrain move`"
_IMPORT_REDIS: Final = "start Redis with it and use `geartrain import gearmand redis://127.0.0.1`"

# How files begin that are not a queue, and what to do with them.
_OTHERS: Final[queued_job.OtherFiles] = (
    (b"PGDMP", "a dump of PostgreSQL in its custom format; write it as text with `pg_restore -f queue.sql FILE`"),
    (b"REDIS", f"a file of Redis; {_IMPORT_REDIS}"),
    (b"ToKyO CaBiNeT", f"a Tokyo Cabinet file; {_MOVE}"),
)


def read(path: Path, table: str = "") -> Iterator[QueuedJob]:
    """Every job of a queue, in the order of the queue; a StoreError says what else the file is.

    `table` is the name of the table, for a file that has several of this form.
    """
    head = queued_job.head_of(path, "a queue of gearmand", _OTHERS)
    rows = _sqlite_rows(path, table) if head.startswith(queued_job.SQLITE) else _dump_rows(path, table)
    for number, row in enumerate(rows, start=1):
        yield _job(row, f"{path}: row {number}")


def read_redis(url: str, prefix: str, password: str) -> Iterator[QueuedJob]:
    """Every job of a queue in a Redis whose keys begin so; a StoreError if there is something else."""
    for row in gearmand_redis.rows(url, prefix, password):
        where = b"-".join((prefix.encode(), row["function_name"], row["unique_key"])).decode("utf-8", "replace")
        yield _job(row, where)


def _sqlite_rows(path: Path, table: str) -> Iterator[Mapping[str, Any]]:
    try:
        connection = apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        try:
            if connection.pragma("application_id") == schema.APPLICATION_ID:
                raise StoreError(f"{path} is a store of Geartrain; use `geartrain dump` and `geartrain load`")
            tables = _tables(connection)
            name = _choose(path, table, tables)
            names = [column for column in (*COLUMNS, RUN_AT) if column in tables[name]]
            quoted = name.replace('"', '""')
            for values in connection.execute(f'SELECT {", ".join(names)} FROM "{quoted}" ORDER BY rowid'):
                yield dict(zip(names, values, strict=True))
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreError(f"cannot read {path}: {error}; if gearmand crashed, copy its -journal file along") from None


def _tables(connection: apsw.Connection) -> dict[str, set[str]]:
    """The columns of each table."""
    rows: Any = connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'"
    )
    tables: dict[str, set[str]] = {}
    for table, column in rows:
        tables.setdefault(table, set()).add(column)
    return tables


def _dump_rows(path: Path, table: str) -> Iterator[Mapping[str, Any]]:
    dump = path.read_bytes()
    postgresql = sql_dump.is_postgresql(dump)
    tables: dict[str, set[str]] = {}
    chosen = table
    try:
        for row in sql_dump.rows(dump):
            tables.setdefault(row.table, set(row.values))
            if not chosen and tables[row.table] >= set(COLUMNS):
                chosen = row.table
            if row.table == chosen:
                values = row.values
                if postgresql and isinstance(values.get("data"), bytes):
                    values["data"] = sql_dump.bytea(values["data"])  # type: ignore[arg-type]
                yield values
            elif not table and tables[row.table] >= set(COLUMNS):
                raise StoreError(f"{path} has the queues {chosen} and {row.table}; choose one with --table")
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from None
    if not tables and b"CREATE TABLE" not in dump:
        raise StoreError(f"{path} is not a queue of gearmand: neither an SQLite file nor a text dump of a database")
    if tables:
        _choose(path, chosen, tables)


def _choose(path: Path, wanted: str, tables: dict[str, set[str]]) -> str:
    """The table with gearmand's columns."""
    found = [name for name, columns in tables.items() if columns >= set(COLUMNS)]
    if wanted in found:
        return wanted
    if wanted or not found:
        what = f"has no table {wanted} of gearmand" if wanted else "has no table of gearmand"
        raise StoreError(f"{path} {what}; its tables are: {', '.join(sorted(tables)) or 'none'}")
    if len(found) > 1:
        raise StoreError(f"{path} has the queues {', '.join(sorted(found))}; choose one with --table")
    return found[0]


def _job(row: Mapping[str, Any], where: str) -> QueuedJob:
    function, unique, payload = (_bytes(row[name]) for name in ("function_name", "unique_key", "data"))
    if not function:
        raise StoreError(f"{where} has no function")
    priority, run_at = (_number(row.get(name), f"{where}: {name}") for name in ("priority", RUN_AT))
    if not 0 <= priority <= Priority.LOW:
        raise StoreError(f"{where}: priority is {priority}, and must be 0 to {Priority.LOW:d}")
    return QueuedJob(function, unique, payload, Priority(priority), float(run_at))


def _bytes(value: Any) -> bytes:
    if value is None:  # an empty payload
        return b""
    return value.encode() if isinstance(value, str) else bytes(value) if isinstance(value, bytes) else b"%d" % value


def _number(value: Any, what: str) -> int:
    """A whole number, also as the text of COPY."""
    try:
        number = int(value or 0)
    except ValueError:
        number = -1
    if number < 0:
        raise StoreError(f"{what} is {value!r}, and must be a whole number")
    return number
