"""The SQLite file's layout, and how a file of an older version becomes one of this version.

`PRAGMA user_version` counts the migrations that a file has had. A new one is appended here and never changed
afterwards: files made by it exist.
"""

from collections.abc import Sequence
from typing import Final

import apsw

from geartrain.errors import StoreError

APPLICATION_ID: Final = 0x47454152  # "GEAR": so that `file` and we know whose it is

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

# Records are only ever added at the end and removed at the beginning, so `seq` is their order in time.
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

# What was in a row that is no job, as it was found; nothing here is read again by the server.
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

MIGRATIONS: Final = (_JOBS, _RECORDS, _BROKEN, _KEPT, _TRIALS)
_ADDED: Final = {"trials": "x''"}  # what stands for a column in a file that has not had its migration


def readable(connection: apsw.Connection, table: str, columns: Sequence[str]) -> list[str]:
    """What to select for these columns from a file that may be of an older version."""
    there = {str(column[1]) for column in connection.execute(f"PRAGMA table_info({table})")}
    return [_ADDED[name] if name in _ADDED and name not in there else name for name in columns]


def recognise(connection: apsw.Connection, path: str) -> int:
    """The version of a file, 0 if it is new; a StoreError if it is not for us. Nothing in it is changed."""
    version = int(connection.pragma("user_version"))
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer Geartrain (layout {version}, this one knows {len(MIGRATIONS)}); "
            "run that version, or use another file"
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StoreError(f"{path} is a database of something else; use another file")
    if version and connection.pragma("application_id") != APPLICATION_ID:
        raise StoreError(f"{path} is a database of something else; use another file")
    return version


def migrate(connection: apsw.Connection, path: str) -> int:
    """Bring a file up to date; returns the version it had. A file of a newer version is left alone."""
    version = recognise(connection, path)
    if version < len(MIGRATIONS):
        with connection:
            for script in MIGRATIONS[version:]:
                connection.execute(script)
            connection.pragma("user_version", len(MIGRATIONS))
            connection.pragma("application_id", APPLICATION_ID)
    return version
