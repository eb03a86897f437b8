"""The layout of the SQLite file, its migrations, and statements that read files of older layouts unmigrated.

`PRAGMA user_version` is the layout: the number of migrations that a file has had. Migrations are only appended, never
changed, because files made by them exist.
"""

from collections.abc import Sequence
from typing import Any, Final

import apsw

from geartrain.errors import StoreError
from geartrain.model import id_from_handle
from geartrain.store.contract import RECORD_COLUMNS, Query
from geartrain.store.transaction import transaction

APPLICATION_ID: Final = 0x47454152  # "GEAR"; it tells our files from those of other programs

_JOBS: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    handle BLOB NOT NULL,
    function BLOB NOT NULL,
    unique_key BLOB NOT NULL,
    payload BLOB NOT NULL,
    priority INTEGER NOT NULL,
    state INTEGER NOT NULL,
    run_at REAL NOT NULL,
    submitted_at REAL NOT NULL,
    attempts INTEGER NOT NULL,
    count INTEGER NOT NULL,
    timeout REAL NOT NULL,
    reducer BLOB NOT NULL,
    door TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
"""

# Records are only added at the end and removed at the beginning, so `seq` is their order in time.
_RECORDS: Final = """
CREATE TABLE records (
    seq INTEGER PRIMARY KEY,
    id INTEGER NOT NULL,
    handle BLOB NOT NULL,
    function BLOB NOT NULL,
    unique_key BLOB NOT NULL,
    priority INTEGER NOT NULL,
    state INTEGER NOT NULL,
    submitted_at REAL NOT NULL,
    started_at REAL NOT NULL,
    finished_at REAL NOT NULL,
    attempts INTEGER NOT NULL,
    door TEXT NOT NULL,
    worker_door TEXT NOT NULL,
    worker BLOB NOT NULL,
    code INTEGER NOT NULL,
    reason TEXT NOT NULL,
    result BLOB NOT NULL
) STRICT;
CREATE INDEX records_by_id ON records (id);
"""

# Quarantine of rows that are not valid jobs, as they were found; the server does not read it.
_BROKEN: Final = """
CREATE TABLE broken (
    found_at, complaint, id, handle, function, unique_key, payload, priority, state, run_at, submitted_at, attempts,
    count, timeout, reducer, door, reason
);
"""

_KEPT: Final = "CREATE TABLE kept (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"

_TRIALS: Final = """
ALTER TABLE jobs ADD COLUMN trials BLOB NOT NULL DEFAULT x'';
ALTER TABLE records ADD COLUMN trials BLOB NOT NULL DEFAULT x'';
ALTER TABLE broken ADD COLUMN trials;
"""

# Up to layout 5 the flag was a suffix of the door. Rows in `broken` stay as they were found.
_KEEPS_RESULT: Final = """
ALTER TABLE jobs ADD COLUMN keeps_result INTEGER NOT NULL DEFAULT 1;
ALTER TABLE records ADD COLUMN keeps_result INTEGER NOT NULL DEFAULT 1;
ALTER TABLE broken ADD COLUMN keeps_result;
UPDATE jobs SET keeps_result = 0, door = substr(door, 1, length(door) - 11) WHERE substr(door, -11) = '+throw-away';
UPDATE records SET keeps_result = 0, door = substr(door, 1, length(door) - 11) WHERE substr(door, -11) = '+throw-away';
"""

# What does not fit into a record of a large result is a row of `results`. Both indexes leave out ordinary records of
# done jobs, so that these cost nothing more.
_RESULTS: Final = """
CREATE TABLE results (id INTEGER PRIMARY KEY, rest BLOB NOT NULL) STRICT;
ALTER TABLE records ADD COLUMN result_size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN result_kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN keep_until REAL NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN keep_for REAL NOT NULL DEFAULT 0;
ALTER TABLE broken ADD COLUMN keep_for;
CREATE INDEX records_failed ON records (finished_at) WHERE state = 4 AND keep_until = 0;
CREATE INDEX records_kept ON records (keep_until) WHERE keep_until > 0;
"""

_PROGRESS: Final = "ALTER TABLE records ADD COLUMN progress TEXT NOT NULL DEFAULT '';"

_EXPIRES_AT: Final = """
ALTER TABLE jobs ADD COLUMN expires_at REAL NOT NULL DEFAULT 0;
ALTER TABLE broken ADD COLUMN expires_at;
"""

# A failed job that is kept whole has a record, and a row here with the columns of `jobs`: a column that one gets, the
# other gets too. The index is of records that are removed at a time of their own.
_FAILED_JOBS: Final = """
CREATE TABLE failed_jobs (
    id INTEGER PRIMARY KEY,
    handle BLOB NOT NULL,
    function BLOB NOT NULL,
    unique_key BLOB NOT NULL,
    payload BLOB NOT NULL,
    priority INTEGER NOT NULL,
    state INTEGER NOT NULL,
    run_at REAL NOT NULL,
    submitted_at REAL NOT NULL,
    attempts INTEGER NOT NULL,
    count INTEGER NOT NULL,
    timeout REAL NOT NULL,
    reducer BLOB NOT NULL,
    door TEXT NOT NULL,
    reason TEXT NOT NULL,
    trials BLOB NOT NULL DEFAULT x'',
    keeps_result INTEGER NOT NULL DEFAULT 1,
    keep_for REAL NOT NULL DEFAULT 0,
    expires_at REAL NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX records_removed ON records (keep_until) WHERE keep_until < 0;
"""

_USER_NAME: Final = """
ALTER TABLE jobs ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
ALTER TABLE failed_jobs ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
ALTER TABLE broken ADD COLUMN user_name;
"""

# Up to layout 11 this was a negative `keep_until`. A record has one of the two times, or none.
_REMOVE_AT: Final = """
ALTER TABLE records ADD COLUMN remove_at REAL NOT NULL DEFAULT 0;
DROP INDEX records_removed;
DROP INDEX records_failed;
UPDATE records SET remove_at = -keep_until, keep_until = 0 WHERE keep_until < 0;
CREATE INDEX records_failed ON records (finished_at) WHERE state = 4 AND keep_until = 0 AND remove_at = 0;
CREATE INDEX records_removed ON records (remove_at) WHERE remove_at > 0;
"""

_PARTITION_NAME: Final = """
ALTER TABLE jobs ADD COLUMN partition_name BLOB NOT NULL DEFAULT x'';
ALTER TABLE failed_jobs ADD COLUMN partition_name BLOB NOT NULL DEFAULT x'';
ALTER TABLE broken ADD COLUMN partition_name;
"""

_AFTER_JOBS: Final = """
ALTER TABLE jobs ADD COLUMN after_jobs BLOB NOT NULL DEFAULT x'';
ALTER TABLE failed_jobs ADD COLUMN after_jobs BLOB NOT NULL DEFAULT x'';
ALTER TABLE broken ADD COLUMN after_jobs;
"""

# A log is of a job that has not ended, or that has a record.
_LOGS: Final = "CREATE TABLE logs (id INTEGER PRIMARY KEY, log BLOB NOT NULL) STRICT;"

MIGRATIONS: Final = (
    _JOBS,
    _RECORDS,
    _BROKEN,
    _KEPT,
    _TRIALS,
    _KEEPS_RESULT,
    _RESULTS,
    _PROGRESS,
    _EXPIRES_AT,
    _FAILED_JOBS,
    _USER_NAME,
    _REMOVE_AT,
    _LOGS,
    _PARTITION_NAME,
    _AFTER_JOBS,
)

# What to select where a column is missing: for that column, and for others that differ without it. The newest migration
# is the first: where an older one is missing too, its expressions are the right ones.
_SUBSTITUTES: Final = {
    "after_jobs": {"after_jobs": "x''"},
    "partition_name": {"partition_name": "x''"},
    "user_name": {"user_name": "''"},
    "remove_at": {"remove_at": "max(-keep_until, 0.0)", "keep_until": "max(keep_until, 0.0)"},
    "expires_at": {"expires_at": "0.0"},
    "progress": {"progress": "''"},
    "keep_for": {"keep_for": "0.0"},
    "result_size": {"result_size": "0", "result_kept": "0", "keep_until": "0.0", "remove_at": "0.0"},
    "keeps_result": {
        "keeps_result": "substr(door, -11) <> '+throw-away'",
        "door": "CASE WHEN substr(door, -11) = '+throw-away' THEN substr(door, 1, length(door) - 11) ELSE door END",
    },
    "trials": {"trials": "x''"},
}
TEXTS: Final = ("door", "worker_door", "reason", "progress", "user_name")
_SEARCH: Final = "instr(handle || x'00' || function || x'00' || unique_key || x'00' || reason, ?)"
_SEARCH_PAYLOAD: Final = "records.id IN (SELECT id FROM failed_jobs WHERE instr(payload, ?))"


def expressions(
    connection: apsw.Connection, table: str, columns: Sequence[str], *, raw_text: bool = False
) -> list[str]:
    """Return the SQL expressions that select these columns from a file of any layout.

    With `raw_text`, text columns are selected as bytes, because text that is not UTF-8 cannot be read otherwise.
    """
    present = {str(column[1]) for column in connection.execute(f"PRAGMA table_info({table})")}
    chosen = {name: name for name in columns}
    for added, substitutes in _SUBSTITUTES.items():
        if added not in present:
            chosen.update(substitutes)
    return [f"CAST({chosen[name]} AS BLOB)" if raw_text and name in TEXTS else chosen[name] for name in columns]


MARK: Final = "?"  # stands for a value in a statement


def insert(table: str, columns: Sequence[str], *, values: Sequence[str] = (), otherwise: str = "") -> str:
    """Return the statement that inserts a row.

    `values` are SQL, by default question marks; `otherwise` is SQL for a row whose key exists, such as "OR REPLACE".

    >>> insert("kept", ("name", "value"), otherwise="OR REPLACE")
    'INSERT OR REPLACE INTO kept (name, value) VALUES (?, ?)'
    """
    row = ", ".join(values) or marks(columns)
    target = f"INTO {table} ({', '.join(columns)}) VALUES ({row})"
    return " ".join(word for word in ("INSERT", otherwise, target) if word)


def literal(value: object) -> str:
    """Return the SQL of a value.

    >>> literal(b"cat"), literal("it's"), literal(True), literal(0.0)
    ("x'636174'", "'it''s'", '1', '0.0')
    """
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(int(value) if isinstance(value, bool) else value)


def marks(values: Sequence[object]) -> str:
    """Return a question mark for each value."""
    return ", ".join(MARK * len(values))


def select_records(connection: apsw.Connection, query: Query) -> tuple[str, tuple[Any, ...]]:
    """Return the statement of a query and its values, for a file of any layout."""
    selected = expressions(connection, "records", RECORD_COLUMNS)
    door = selected[RECORD_COLUMNS.index("door")]
    tests: list[tuple[str, Any]] = [
        ("handle = ?", query.handle), ("function = ?", query.function),
        ("finished_at >= ?", query.since), ("finished_at < ?", query.until), ("id < ?", query.below),
        ("id >= ?", query.least),
        (f"{door} = ?", query.door),
    ]  # fmt: skip
    conditions = [test for test, value in tests if value]
    values = [value for _, value in tests if value]
    if query.search:
        searches = [_SEARCH, *([_SEARCH_PAYLOAD] if connection.table_exists("main", "failed_jobs") else [])]
        conditions.append(f"({' OR '.join(searches)})")
        values += [query.search] * len(searches)
    if id := id_from_handle(query.handle):
        conditions.append("id = ?")  # which has an index
        values.append(id)
    if query.state >= 0:
        conditions.append("state = ?")
        values.append(query.state)
    where = "WHERE " + " AND ".join(conditions) if conditions else ""
    order = "id" if query.by_id else "seq"
    statement = f"SELECT {', '.join(selected)} FROM records {where} ORDER BY {order} DESC LIMIT ?"
    return statement, (*values, query.limit)


def recognise(connection: apsw.Connection, path: str) -> int:
    """Return the layout of a file, 0 if it is new; raise StoreError if this version cannot use it."""
    version = int(connection.pragma("user_version"))
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer Geartrain (layout {version}, this one knows {len(MIGRATIONS)}); "
            "run that version, or use another file"
        )
    is_other = connection.pragma("application_id") != APPLICATION_ID if version else _has_tables(connection)
    if is_other:
        raise StoreError(
            f"{path} is not a Geartrain store but another SQLite database; use another file. `geartrain import` reads "
            "queues of gearmand"
        )
    return version


def _has_tables(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").get)


def migrate(connection: apsw.Connection, path: str) -> int:
    """Migrate a file to the current layout; return the layout it had. Raise StoreError as `recognise` does."""
    version = recognise(connection, path)
    if version < len(MIGRATIONS):
        with transaction(connection):
            for script in MIGRATIONS[version:]:
                connection.execute(script)
            connection.pragma("user_version", len(MIGRATIONS))
            connection.pragma("application_id", APPLICATION_ID)
    return version
