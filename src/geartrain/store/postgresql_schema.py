"""The tables of a PostgreSQL store, and their migrations.

All of them are in one schema, `geartrain` unless the store's URL has another (`?schema=`). `meta.layout` is the number
of migrations that a schema has had. Migrations are only appended, never changed. The first server of a new version
carries them out under a lock, while servers of older versions may be running: `OLDEST` says which layouts can go on
beside the current one. So a migration only adds; what is to be removed is removed one version later, and every
statement names its columns.

Nobody claims jobs from these tables: a job belongs to the server that accepted it, which has it in memory, and its row
is there for the day on which that server is lost. Hence there is no index on function, state or time.
"""

import secrets
from typing import Any, Final

import psycopg
from psycopg import sql

from geartrain.errors import StoreError
from geartrain.store.shared import JOINING, SERVING

DEFAULT_SCHEMA: Final = "geartrain"
OLDEST_SERVER: Final = 150000  # PostgreSQL 15

# Numbers of nodes begin so high that ids are above all that other stores give out, and below 2**53 for another million
# starts.
FIRST_NODE: Final = 2**20

SECRET_BYTES: Final = 32
# SQLSTATEs that `fence` raises.
IS_FENCED: Final = "GT001"
IS_COMMITTED: Final = "GT002"
IS_BEHIND: Final = "GT003"

_JOB_COLUMNS: Final = """
    id bigint PRIMARY KEY,
    handle bytea NOT NULL,
    function bytea NOT NULL,
    unique_key bytea NOT NULL,
    payload bytea NOT NULL,
    priority smallint NOT NULL,
    state smallint NOT NULL,
    run_at float8 NOT NULL,
    submitted_at float8 NOT NULL,
    attempts bigint NOT NULL,
    count bigint NOT NULL,
    timeout float8 NOT NULL,
    reducer bytea NOT NULL,
    door text NOT NULL,
    reason bytea NOT NULL,
    trials bytea NOT NULL,
    keeps_result boolean NOT NULL,
    keep_for float8 NOT NULL,
    expires_at float8 NOT NULL,
    user_name text NOT NULL
"""

# Jobs come and go by their primary key, so dead rows cost space and no time. The thresholds are numbers of rows and not
# shares of the table, because most of the time the table is nearly empty.
_VACUUM: Final = """
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 20000
"""

# `key` is a hash of function and unique key, because an entry of a btree index is at most 2.7 kB. Dead jobs have none.
_TABLES: Final = f"""
CREATE TABLE {{schema}}.nodes (
    id bigint GENERATED ALWAYS AS IDENTITY (START WITH {FIRST_NODE}) PRIMARY KEY,
    name text NOT NULL,
    link text NOT NULL,
    machine text NOT NULL,
    version text NOT NULL,
    layout integer NOT NULL,
    state smallint NOT NULL,
    leader boolean NOT NULL DEFAULT false,
    draining boolean NOT NULL DEFAULT false,
    seen bigint NOT NULL DEFAULT 0,
    batch bigint NOT NULL DEFAULT 0,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 20);
CREATE UNIQUE INDEX nodes_leader ON {{schema}}.nodes (leader) WHERE leader AND state = {SERVING};

CREATE TABLE {{schema}}.ranges (low bigint PRIMARY KEY, high bigint NOT NULL, node bigint NOT NULL);

CREATE TABLE {{schema}}.jobs ({_JOB_COLUMNS}, key bytea) WITH ({_VACUUM});
CREATE UNIQUE INDEX jobs_key ON {{schema}}.jobs (key) WHERE key IS NOT NULL;

CREATE TABLE {{schema}}.broken (
    found timestamptz NOT NULL DEFAULT clock_timestamp(), complaint text NOT NULL, LIKE {{schema}}.jobs
);

CREATE TABLE {{schema}}.records (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bigint NOT NULL,
    handle bytea NOT NULL,
    function bytea NOT NULL,
    unique_key bytea NOT NULL,
    priority smallint NOT NULL,
    state smallint NOT NULL,
    submitted_at float8 NOT NULL,
    started_at float8 NOT NULL,
    finished_at float8 NOT NULL,
    attempts bigint NOT NULL,
    door text NOT NULL,
    worker_door text NOT NULL,
    worker bytea NOT NULL,
    code bigint NOT NULL,
    reason bytea NOT NULL,
    result bytea NOT NULL,
    trials bytea NOT NULL,
    keeps_result boolean NOT NULL,
    result_size bigint NOT NULL,
    result_kept bigint NOT NULL,
    keep_until float8 NOT NULL,
    remove_at float8 NOT NULL,
    progress text NOT NULL
) WITH ({_VACUUM});
CREATE INDEX records_id ON {{schema}}.records (id);
CREATE INDEX records_failed ON {{schema}}.records (finished_at) WHERE state = 4 AND keep_until = 0 AND remove_at = 0;
CREATE INDEX records_kept ON {{schema}}.records (keep_until) WHERE keep_until > 0;
CREATE INDEX records_removed ON {{schema}}.records (remove_at) WHERE remove_at > 0;

CREATE TABLE {{schema}}.results (id bigint PRIMARY KEY, rest bytea NOT NULL) WITH ({_VACUUM});
CREATE TABLE {{schema}}.logs (id bigint PRIMARY KEY, log bytea NOT NULL) WITH ({_VACUUM});
CREATE TABLE {{schema}}.failed_jobs ({_JOB_COLUMNS}) WITH ({_VACUUM});
CREATE TABLE {{schema}}.kept (
    name text PRIMARY KEY,
    value bytea NOT NULL,
    version bigint NOT NULL,
    saved timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""

# Every batch calls it first, and cannot be committed if it raises. It proves that the server still has its node,
# counts the batch, limits the waits of the transaction, and has it use indexes: PostgreSQL knows little of tables that
# change so quickly, and would read all the dead rows of one that is nearly empty. It finds its row by the place that it
# had (`at`): while an old snapshot keeps dead rows from being removed, the way by the primary key becomes longer with
# every batch. A scan by place does not clean up the page, so the caller goes by the key from time to time.
_FENCE: Final = f"""
CREATE FUNCTION {{schema}}.fence(me bigint, at tid, number bigint, known bigint) RETURNS tid LANGUAGE plpgsql AS $$
DECLARE place tid;
BEGIN
    PERFORM set_config('lock_timeout', '2s', true), set_config('statement_timeout', '20s', true),
            set_config('idle_in_transaction_session_timeout', '10s', true),
            set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    UPDATE {{schema}}.nodes SET batch = number, beat = clock_timestamp(), seen = greatest(seen, known)
        WHERE ctid = at AND id = me AND state IN ({SERVING}, {JOINING}) AND batch < number RETURNING ctid INTO place;
    IF place IS NULL THEN
        UPDATE {{schema}}.nodes SET batch = number, beat = clock_timestamp(), seen = greatest(seen, known)
            WHERE id = me AND state IN ({SERVING}, {JOINING}) AND batch < number RETURNING ctid INTO place;
    END IF;
    IF place IS NULL THEN
        PERFORM 1 FROM {{schema}}.nodes WHERE id = me AND state IN ({SERVING}, {JOINING});
        IF FOUND THEN
            RAISE EXCEPTION 'batch % of node % is committed already', number, me USING ERRCODE = '{IS_COMMITTED}';
        END IF;
        RAISE EXCEPTION 'node % is fenced', me USING ERRCODE = '{IS_FENCED}';
    END IF;
    RETURN place;
END $$;
"""

# A row for each job that holds a lock; `most` is the limit that it asked for.
_LOCKS: Final = f"""
CREATE TABLE {{schema}}.locks (
    name bytea NOT NULL,
    job bigint NOT NULL,
    node bigint NOT NULL,
    most integer NOT NULL,
    PRIMARY KEY (name, job)
) WITH ({_VACUUM});
"""

# Grants and releases locks (a limit of 0) in the order of the arrays. Those who ask for the same lock do so one after
# another, so that each sees the rows of those before it; they take the advisory locks in the same order, so that none
# waits for another in a circle. The advisory locks are those of the whole database: another schema only waits longer.
_CHANGE_LOCKS: Final = f"""
CREATE FUNCTION {{schema}}.change_locks(me bigint, names bytea[], jobs bigint[], limits integer[])
RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE granted boolean[] := ARRAY[]::boolean[];
BEGIN
    PERFORM set_config('lock_timeout', '2s', true), set_config('statement_timeout', '20s', true);
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock(key) FROM (
        SELECT DISTINCT hashtextextended('geartrain lock ' || encode(asked.name, 'hex'), 0) AS key
        FROM unnest(names, limits) AS asked(name, most) WHERE asked.most > 0 ORDER BY 1
    ) AS keys;
    PERFORM 1 FROM {{schema}}.nodes WHERE id = me AND state IN ({SERVING}, {JOINING});
    IF NOT FOUND THEN
        RAISE EXCEPTION 'node % is fenced', me USING ERRCODE = '{IS_FENCED}';
    END IF;
    FOR i IN 1 .. cardinality(names) LOOP
        IF limits[i] = 0 THEN
            DELETE FROM {{schema}}.locks WHERE name = names[i] AND job = jobs[i] AND node = me;
            granted := granted || true;
            CONTINUE;
        END IF;
        DELETE FROM {{schema}}.locks AS held WHERE name = names[i] AND NOT EXISTS (
            SELECT 1 FROM {{schema}}.nodes WHERE id = held.node AND state IN ({SERVING}, {JOINING}));
        INSERT INTO {{schema}}.locks AS own (name, job, node, most)
            SELECT names[i], jobs[i], me, limits[i] FROM (
                SELECT count(*) AS holders, max(most) AS most, coalesce(bool_or(job = jobs[i]), false) AS is_holder
                FROM {{schema}}.locks WHERE name = names[i]
            ) AS held WHERE is_holder OR holders < greatest(limits[i], held.most)
            ON CONFLICT (name, job) DO UPDATE SET node = excluded.node, most = greatest(own.most, excluded.most);
        granted := granted || FOUND;
    END LOOP;
    RETURN granted;
END $$;
"""

# A server of an older layout writes jobs without it: it knows no partitions, and ignores those of jobs that it takes
# over.
_PARTITION_NAME: Final = """
ALTER TABLE {schema}.jobs ADD COLUMN partition_name bytea NOT NULL DEFAULT '';
ALTER TABLE {schema}.failed_jobs ADD COLUMN partition_name bytea NOT NULL DEFAULT '';
ALTER TABLE {schema}.broken ADD COLUMN partition_name bytea;
"""

# The same: it runs jobs that it takes over without waiting for others.
_AFTER_JOBS: Final = """
ALTER TABLE {schema}.jobs ADD COLUMN after_jobs bytea NOT NULL DEFAULT '';
ALTER TABLE {schema}.failed_jobs ADD COLUMN after_jobs bytea NOT NULL DEFAULT '';
ALTER TABLE {schema}.broken ADD COLUMN after_jobs bytea;
"""

# The fence of servers that also say which commit of theirs was the last (`last`). A pooler may hand their transaction
# to a database that does not have it any more, over a connection that has never been lost.
_FENCE_AFTER: Final = f"""
CREATE FUNCTION {{schema}}.fence(me bigint, at tid, number bigint, known bigint, last bigint)
RETURNS tid LANGUAGE plpgsql AS $$
DECLARE
    place tid;
    counter bigint;
BEGIN
    PERFORM set_config('lock_timeout', '2s', true), set_config('statement_timeout', '20s', true),
            set_config('idle_in_transaction_session_timeout', '10s', true),
            set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    UPDATE {{schema}}.nodes SET batch = number, beat = clock_timestamp(), seen = greatest(seen, known)
        WHERE ctid = at AND id = me AND state IN ({SERVING}, {JOINING}) AND batch >= last AND batch < number
        RETURNING ctid INTO place;
    IF place IS NULL THEN
        UPDATE {{schema}}.nodes SET batch = number, beat = clock_timestamp(), seen = greatest(seen, known)
            WHERE id = me AND state IN ({SERVING}, {JOINING}) AND batch >= last AND batch < number
            RETURNING ctid INTO place;
    END IF;
    IF place IS NULL THEN
        SELECT CASE WHEN state IN ({SERVING}, {JOINING}) THEN batch END INTO counter
            FROM {{schema}}.nodes WHERE id = me;
        IF NOT FOUND OR counter < last THEN
            RAISE EXCEPTION 'batch % of node % is not there', last, me USING ERRCODE = '{IS_BEHIND}';
        ELSIF counter >= number THEN
            RAISE EXCEPTION 'batch % of node % is committed already', number, me USING ERRCODE = '{IS_COMMITTED}';
        END IF;
        RAISE EXCEPTION 'node % is fenced', me USING ERRCODE = '{IS_FENCED}';
    END IF;
    RETURN place;
END $$;
"""

MIGRATIONS: Final = (_TABLES + _FENCE, _LOCKS + _CHANGE_LOCKS, _PARTITION_NAME, _AFTER_JOBS, _FENCE_AFTER)
AFTER_JOBS_SINCE: Final = 4
# The oldest layout whose servers can run beside servers of the current one.
OLDEST: Final = 1


def migrate(connection: psycopg.Connection[Any], schema: str, handle_prefix: str) -> str:
    """Create the tables or bring them to the current layout; return the prefix of the cluster's handles.

    The first server decides that prefix, since a handle must be valid at every server. A StoreError says why this
    version cannot use the tables.
    """
    _require_server(connection)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('geartrain:' || %s, 0))", (schema,))
        layout = read_layout(connection, schema)
        if layout > len(MIGRATIONS):
            oldest = read_oldest_layout(connection, schema)
            if len(MIGRATIONS) < oldest:
                raise StoreError(
                    f"schema {schema!r} was migrated by a newer Geartrain (layout {layout}, servers of layout {oldest} "
                    f"and later can use it, this one knows {len(MIGRATIONS)}); run that version"
                )
        elif layout < len(MIGRATIONS):
            _upgrade(connection, schema, layout, handle_prefix)
        row = connection.execute(_named("SELECT words FROM {schema}.meta WHERE name = 'handle_prefix'", schema))
        return str(one(row)[0])


def read_secret(connection: psycopg.Connection[Any], schema: str) -> bytes:
    """The secret by which the servers of a cluster know each other; the first server makes it."""
    with connection.transaction():
        statement = "INSERT INTO {schema}.meta (name, words) VALUES ('secret', %s) ON CONFLICT (name) DO NOTHING"
        connection.execute(_named(statement, schema), (secrets.token_hex(SECRET_BYTES),))
        row = connection.execute(_named("SELECT words FROM {schema}.meta WHERE name = 'secret'", schema))
        return bytes.fromhex(str(one(row)[0]))


def read_layout(connection: psycopg.Connection[Any], schema: str) -> int:
    """The layout of a schema; 0 if there are no tables of ours."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'meta'), "
        "EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %s)",
        (schema, schema),
    )
    is_ours, is_used = one(row)
    if is_ours:
        return _meta(connection, schema, "layout")
    if is_used:
        raise StoreError(f"schema {schema!r} has tables of another program; name another one with ?schema= in the URL")
    return 0


def read_oldest_layout(connection: psycopg.Connection[Any], schema: str) -> int:
    """The oldest layout whose servers can use a schema that has tables of ours."""
    return _meta(connection, schema, "oldest_layout")


def _upgrade(connection: psycopg.Connection[Any], schema: str, layout: int, handle_prefix: str) -> None:
    if not layout:
        if not one(connection.execute("SELECT to_regnamespace(quote_ident(%s)) IS NOT NULL", (schema,)))[0]:
            connection.execute(_named("CREATE SCHEMA {schema}", schema))
        connection.execute(
            _named(
                "CREATE TABLE {schema}.meta "
                "(name text PRIMARY KEY, value bigint NOT NULL DEFAULT 0, words text NOT NULL DEFAULT '')",
                schema,
            )
        )
        connection.execute(
            _named(
                "INSERT INTO {schema}.meta (name, words) "
                "VALUES ('layout', ''), ('oldest_layout', ''), ('kept', ''), ('handle_prefix', %s)",
                schema,
            ),
            (handle_prefix,),
        )
    for script in MIGRATIONS[layout:]:
        connection.execute(_named(script, schema))
    update = _named("UPDATE {schema}.meta SET value = %s WHERE name = %s", schema)
    connection.execute(update, (len(MIGRATIONS), "layout"))
    connection.execute(update, (OLDEST, "oldest_layout"))


def _meta(connection: psycopg.Connection[Any], schema: str, name: str) -> int:
    return int(one(connection.execute(_named("SELECT value FROM {schema}.meta WHERE name = %s", schema), (name,)))[0])


def _require_server(connection: psycopg.Connection[Any]) -> None:
    version, encoding = one(
        connection.execute("SELECT current_setting('server_version_num')::int, current_setting('server_encoding')")
    )
    if version < OLDEST_SERVER:
        raise StoreError(f"PostgreSQL {version // 10000} is too old; Geartrain needs 15 or later")
    if encoding != "UTF8":
        raise StoreError(f"the database has the encoding {encoding}; create one with the encoding UTF8")


def _named(script: str, schema: str) -> sql.Composed:
    return sql.SQL(script).format(schema=sql.Identifier(schema))


def one(cursor: psycopg.Cursor[Any]) -> Any:
    """The only row of an answer."""
    row = cursor.fetchone()
    assert row is not None
    return row
