"""Loading a dump into a PostgreSQL store: all of it, or nothing, also while servers use it.

The rules are those of `loader.py`: what is there stays, unless it is to be replaced. Servers that run have their jobs
in memory, so nothing of theirs can be replaced: `replace` is refused while there are any. The jobs of the dump get into
ranges that no server has; those that run, or start next, take them over.

The dump is read into temporary tables first. What servers might have to wait for, unique keys and saved values, comes
last. A server that starts meanwhile waits until the dump is loaded.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import psycopg
from psycopg import sql

from geartrain.errors import StoreError
from geartrain.store import dump
from geartrain.store import postgresql_rows as packed
from geartrain.store.contract import COLUMNS, RECORD_COLUMNS, ResultLimits
from geartrain.store.load_counts import LoadCounts, Notice, Summary
from geartrain.store.postgresql_commit import KEYED_COLUMNS
from geartrain.store.postgresql_connection import Connection, Target, connect, describe
from geartrain.store.postgresql_nodes import lock_joining
from geartrain.store.postgresql_parameters import Array, unnested
from geartrain.store.postgresql_ranges import RangeKeeper
from geartrain.store.postgresql_records import RecordTable
from geartrain.store.postgresql_schema import migrate, one
from geartrain.store.postgresql_snapshot import LEASE
from geartrain.store.postgresql_staging import FAILED, JOBS, RECORDS, RESTS, Staging
from geartrain.store.saved_value_loader import SavedValueLoader

_STAGED_IDS: Final = f"SELECT id FROM pg_temp.{JOBS} UNION ALL SELECT id FROM pg_temp.{RECORDS}"
_PROGRESS_EVERY: Final = 1000
# What a job (t) can share with one of the store (o), and the tables of the store to look into.
_STORED: Final = "(SELECT id, handle FROM {s}.jobs UNION ALL SELECT id, handle FROM {s}.records) AS o"
_CONFLICTS: Final = (
    ("id", JOBS, _STORED, "o.id = t.id"),
    ("handle", JOBS, "{s}.jobs AS o", "o.handle = t.handle"),
    ("unique key", JOBS, "{s}.jobs AS o", "o.key = t.key"),
    ("id", RECORDS, _STORED, "o.id = t.id"),
    ("handle", RECORDS, "{s}.jobs AS o", "o.handle = t.handle"),
)
_LIMITS: Final = """
SELECT set_config('lock_timeout', '30s', true), set_config('statement_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '0', true),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                  ELSE current_setting('synchronous_commit') END, true)
"""


def load(
    target: Target,
    limits: ResultLimits,
    handle_prefix: bytes,
    lines: Iterable[bytes],
    replace: bool,
    notice: Notice,
    progress: Callable[[int], None],
) -> Summary:
    """Load a dump. On DumpError and StoreError the store is unchanged. `handle_prefix` is for a store that is new."""
    reader = dump.DumpReader()
    try:
        with connect(target, LEASE) as connection:
            migrate(connection, target.schema, handle_prefix.decode("utf-8", "surrogateescape"))
            with connection.transaction():
                return _DumpLoad(connection, target, limits, LoadCounts(replace, notice)).load(
                    reader.read(lines), progress
                )
    except psycopg.Error as error:
        raise StoreError(
            f"cannot write {target.shown}: {describe(error)}; load the dump again: what is there is skipped"
        ) from None


class _DumpLoad:
    """One dump, within one transaction."""

    def __init__(self, connection: Connection, target: Target, limits: ResultLimits, counts: LoadCounts) -> None:
        self._connection = connection
        self._target = target
        self._counts = counts
        self._ranges = RangeKeeper(connection, target.schema)
        self._table = RecordTable(target.schema, limits)

    def load(self, entries: Iterable[dump.Entry], progress: Callable[[int], None]) -> Summary:
        self._execute(_LIMITS)
        self._require_alone()
        staging = Staging(self._connection, self._target.schema, self._table)
        for number, entry in enumerate(entries, start=1):
            staging.add(entry)
            if not number % _PROGRESS_EVERY:
                progress(number)
        staging.finish()
        lock_joining(self._connection, self._target.schema)
        if self._counts.replace:
            self._require_stopped_servers()
        self._ranges.skip_numbers(self._highest_id())
        self._drop_equal_keys()
        if self._counts.replace:
            self._remove_stored()
        else:
            self._skip_stored()
        self._skip_owned()
        self._insert(staging.values)
        return self._counts.summary(self._ranges.next_id)

    def _require_alone(self) -> None:
        lock = "SELECT pg_try_advisory_xact_lock(hashtextextended('geartrain load ' || %s, 0))"
        if not one(self._execute(lock, self._target.schema))[0]:
            raise StoreError(f"another dump is being loaded into {self._target.shown}; load this one when that is done")

    def _require_stopped_servers(self) -> None:
        if names := self._ranges.running():
            raise StoreError(
                f"--replace is not possible while servers use {self._target.shown}, which have their jobs in memory: "
                f"{', '.join(names)}. Stop them, or load without --replace"
            )

    def _highest_id(self) -> int:
        highest = one(self._execute(f"SELECT max(id) FROM ({_STAGED_IDS}) AS ids"))[0]
        return highest or 0

    # Conflicts

    def _drop_equal_keys(self) -> None:
        """Of jobs of the dump with the same unique key, keep the first; or the last, if it is to replace the others."""
        order = ">" if self._counts.replace else "<"
        answer = self._execute(
            f"DELETE FROM pg_temp.{JOBS} t USING pg_temp.{JOBS} o WHERE o.key = t.key AND o.id {order} t.id "
            "RETURNING t.handle, o.handle"
        )
        for handle, other in answer:
            self._counts.refuse(_reason(handle, other, "unique key"))

    def _skip_stored(self) -> None:
        """Leave out what the store has, and what has something in common with other jobs of it."""
        for table in (JOBS, RECORDS):
            statement = f"DELETE FROM pg_temp.{table} t USING {_STORED} WHERE o.id = t.id AND o.handle = t.handle"
            self._counts.present += self._execute(statement).rowcount
        for shared, table, others, condition in _CONFLICTS:
            statement = f"DELETE FROM pg_temp.{table} t USING {others} WHERE {condition} RETURNING t.handle, o.handle"
            for handle, other in self._execute(statement):
                self._counts.refuse(_reason(handle, other, shared))

    def _remove_stored(self) -> None:
        """Remove what the store has, and what has something in common with jobs and records of the dump."""
        self._execute("CREATE TEMP TABLE staged_replaced (id bigint) ON COMMIT DROP")
        collect = "INSERT INTO pg_temp.staged_replaced SELECT id FROM removed"
        for table, column in ((JOBS, "id"), (JOBS, "handle"), (JOBS, "key"), (RECORDS, "id"), (RECORDS, "handle")):
            removed = f"DELETE FROM {{s}}.jobs o USING pg_temp.{table} t WHERE o.{column} = t.{column} RETURNING t.id"
            self._execute(f"WITH removed AS ({removed}) {collect}")
        for stored in ("records", "results", "failed_jobs"):
            removed = f"DELETE FROM {{s}}.{stored} o USING ({_STAGED_IDS}) t WHERE o.id = t.id RETURNING t.id"
            self._execute(f"WITH removed AS ({removed}) {collect}")
        self._counts.replaced += one(self._execute("SELECT count(DISTINCT id) FROM pg_temp.staged_replaced"))[0]

    def _skip_owned(self) -> None:
        """Leave out jobs whose ids belong to servers that are running: those would never notice them."""
        for ids in self._ranges.owned():
            for table in (JOBS, RECORDS) if ids.is_in_use else (JOBS,):
                delete = f"DELETE FROM pg_temp.{table} WHERE id >= %s AND id < %s RETURNING handle"
                for (handle,) in self._execute(delete, ids.low, ids.high):
                    self._counts.refuse(
                        f"{dump.shown(handle)} was not loaded: its id belongs to server {ids.name}, which is running; "
                        "stop that one and load again"
                    )

    # Writing

    def _insert(self, values: list[dump.SavedValue]) -> None:
        columns = ", ".join(KEYED_COLUMNS)
        insert = f"INSERT INTO {{s}}.jobs ({columns}) SELECT {columns} FROM pg_temp.{JOBS}"
        self._counts.jobs += self._execute(f"{insert} WHERE key IS NULL").rowcount
        self._insert_records()
        self._insert_keyed(insert)
        self._ranges.cover(JOBS)
        if values:
            self._save(values)

    def _insert_records(self) -> None:
        """Add records before those that are there: they are removed in the order of `seq`, the oldest first."""
        columns = ", ".join(RECORD_COLUMNS)
        first = one(self._execute("SELECT min(seq) FROM {s}.records"))[0]
        source = f"FROM pg_temp.{RECORDS} ORDER BY finished_at, ctid"
        if first is None:
            statement = f"INSERT INTO {{s}}.records ({columns}) SELECT {columns} {source}"
        else:
            count = one(self._execute(f"SELECT count(*) FROM pg_temp.{RECORDS}"))[0]
            number = f"row_number() OVER (ORDER BY finished_at, ctid) + {first - count - 1}"
            statement = (
                f"INSERT INTO {{s}}.records (seq, {columns}) OVERRIDING SYSTEM VALUE "
                f"SELECT {number}, {columns} FROM pg_temp.{RECORDS}"
            )
        self._counts.records += self._execute(statement).rowcount
        job_columns = ", ".join(COLUMNS)
        for name, staged, fields in (("results", RESTS, "id, rest"), ("failed_jobs", FAILED, job_columns)):
            self._execute(
                f"INSERT INTO {{s}}.{name} ({fields}) SELECT {fields} FROM pg_temp.{staged} "
                f"WHERE id IN (SELECT id FROM pg_temp.{RECORDS})"
            )

    def _insert_keyed(self, insert: str) -> None:
        """Add jobs with unique keys, unless servers have used the keys since."""
        statement = f"{insert} WHERE key IS NOT NULL ORDER BY key ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING"
        self._counts.jobs += self._execute(statement).rowcount
        missing = (
            f"DELETE FROM pg_temp.{JOBS} t USING {{s}}.jobs AS o WHERE o.key = t.key AND o.id <> t.id "
            "RETURNING t.handle, o.handle"
        )
        for handle, other in self._execute(missing):
            self._counts.refuse(_reason(handle, other, "unique key"))

    def _save(self, values: list[dump.SavedValue]) -> None:
        """Save values. Servers that save some as well wait until this transaction ends."""
        version = one(self._execute("UPDATE {s}.meta SET value = value + 1 WHERE name = 'kept' RETURNING value"))[0]
        added: dict[str, bytes] = {}
        stored = dict(self._execute("SELECT name, value FROM {s}.kept ORDER BY name").fetchall())
        loader = SavedValueLoader(stored, self._counts, added.__setitem__)
        for saved in values:
            loader.add(saved)
        if added:
            columns = packed.columns((packed.TEXT, packed.BYTEA), sorted(added.items()))
            self._execute(
                "INSERT INTO {s}.kept (name, value, version) "
                f"SELECT *, {version} FROM {unnested((packed.TEXT, packed.BYTEA))} "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = excluded.version",
                *map(Array, columns),
            )

    def _execute(self, text: str, *values: Any) -> Any:
        statement = sql.SQL(text).format(s=sql.Identifier(self._target.schema))
        return self._connection.execute(statement, values or None)


def _reason(handle: bytes, other: bytes, shared: str) -> str:
    return f"{dump.shown(handle)} was not loaded: {dump.shown(other)} has the same {shared}"
