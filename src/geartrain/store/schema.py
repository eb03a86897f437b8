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

# Up to layout 5 the flag was a suffix of the door's name. Rows in `broken` stay as they were found.
_KEEPS_RESULT: Final = """
ALTER TABLE jobs ADD COLUMN keeps_result INTEGER NOT NULL DEFAULT 1;
ALTER TABLE records ADD COLUMN keeps_result INTEGER NOT NULL DEFAULT 1;
ALTER TABLE broken ADD COLUMN keeps_result;
UPDATE jobs SET keeps_result = 0, door = substr(door, 1, length(door) - 11) WHERE substr(door, -11) = '+throw-away';
UPDATE records SET keeps_result = 0, door = substr(door, 1, length(door) - 11) WHERE substr(door, -11) = '+throw-away';
"""

MIGRATIONS: Final = (_JOBS, _RECORDS, _BROKEN, _KEPT, _TRIALS, _KEEPS_RESULT)

# What to select from a file that has not had the migration which added a column: by that column, what gives its value
# and what gives the values of older columns that the migration changed.
_BEFORE: Final = {
    "trials": {"trials": "x''"},
    "keeps_result": {
        "keeps_result": "substr(door, -11) <> '+throw-away'",
        "door": "CASE WHEN substr(door, -11) = '+throw-away' THEN substr(door, 1, length(door) - 11) ELSE door END",
    },
}
TEXTS: Final = ("door", "worker_door", "reason")


def expressions(
    connection: apsw.Connection, table: str, columns: Sequence[str], *, raw_text: bool = False
) -> list[str]:
    """What to select for these columns from a file that may be of an older version.

    With `raw_text`, text columns are selected as bytes: text that is not UTF-8 cannot be read otherwise.
    """
    present = {str(column[1]) for column in connection.execute(f"PRAGMA table_info({table})")}
    before: dict[str, str] = {}
    for added, substitutes in _BEFORE.items():
        if added not in present:
            before.update(substitutes)
    chosen = {name: before.get(name, name) for name in columns}
    return [f"CAST({chosen[name]} AS BLOB)" if raw_text and name in TEXTS else chosen[name] for name in columns]


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
