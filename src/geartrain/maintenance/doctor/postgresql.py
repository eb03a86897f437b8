"""Checks of a PostgreSQL store: the database, how safe its settings are, its tables, and the servers that share it.

Each check is a transaction of its own that only reads, so that one which fails does not keep others from running.
"""

import contextlib
from collections.abc import Iterator
from typing import Final

import psycopg

from geartrain.errors import StoreError
from geartrain.maintenance import store_file
from geartrain.maintenance.doctor import postgresql_servers
from geartrain.maintenance.doctor.database import Database, DatabaseCheck
from geartrain.maintenance.doctor.finding import Check, Finding, Level
from geartrain.store import postgresql_xmin
from geartrain.store.postgresql_connection import Target, connect, describe
from geartrain.store.postgresql_schema import MIGRATIONS, OLDEST_SERVER, read_layout, read_oldest_layout

_LEASE: Final = 10.0
_OLD_SECONDS: Final = 600.0  # of a transaction
_OLD_TRANSACTIONS: Final = 10_000_000  # that a replication slot holds back
_MANY_DEAD: Final = 100_000  # rows: less than that is vacuumed soon
_FEW_CONNECTIONS: Final = 10
_TABLES: Final = (
    "jobs",
    "records",
    "results",
    "logs",
    "failed_jobs",
    "nodes",
    "ranges",
    "kept",
    "locks",
    "meta",
    "broken",
)
_SEE_ALL: Final = "as a superuser: GRANT pg_read_all_stats TO this role; then doctor sees the transactions of others"


def examine(url: str) -> Iterator[Finding]:
    """All checks in order."""
    target = Target.of(url)
    check = Check("connection")
    try:
        connection = connect(target, _LEASE)
    except psycopg.Error as error:
        yield check.problem(f"{target.shown}: {describe(error)}", _connection_advice(error))
        return
    with connection:
        yield check.ok(f"{target.shown} as {connection.info.user}")
        for name, function in (*_BEFORE_TABLES, ("layout", layout)):
            finding = _run(function, Database(connection, target.schema), Check(name))
            yield finding
            if finding.level is Level.PROBLEM and name in ("server", "layout"):
                return
        if not read_layout(connection, target.schema):
            return
        for name, function in (*_OF_TABLES, *postgresql_servers.CHECKS):
            yield _run(function, Database(connection, target.schema), Check(name))


def is_running(url: str, name: str, machine: str) -> bool:
    """Whether the server of that name runs on this machine."""
    target = Target.of(url)
    with contextlib.suppress(psycopg.Error, StoreError), connect(target, _LEASE) as connection:
        return postgresql_servers.is_running(Database(connection, target.schema), name, machine)
    return False


def _run(function: DatabaseCheck, database: Database, check: Check) -> Finding:
    """Run one check; if it cannot read what it needs, that is its finding."""
    try:
        with database.connection.transaction():
            database.connection.execute("SET TRANSACTION READ ONLY")
            database.connection.execute("SET LOCAL statement_timeout = '10s'")
            return function(database, check)
    except psycopg.errors.QueryCanceled:
        return check.warning("not checked: that takes longer than 10 seconds", "try again when PostgreSQL is less busy")
    except psycopg.Error as error:
        return check.problem(f"cannot be checked: {describe(error)}", "check what this role may do in the database")
    except StoreError as error:
        return check.problem(str(error), "name another schema, or use another version of Geartrain")


def _connection_advice(error: psycopg.Error) -> str:
    if (error.sqlstate is None and "password" in str(error)) or (error.sqlstate or "").startswith("28"):
        return "check user and password: PGPASSFILE, PGPASSWORD, or the URL in GEARTRAIN_STORE or the settings file"
    return "check that PostgreSQL runs and that this machine may connect: host, port, pg_hba.conf, a firewall"


def server(database: Database, check: Check) -> Finding:
    """The version of PostgreSQL, and the encoding of the database."""
    number, version, encoding, standby = database.row(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'), "
        "current_setting('server_encoding'), pg_is_in_recovery()"
    )
    if number < OLDEST_SERVER:
        return check.problem(f"PostgreSQL {version}; Geartrain needs 15 or later", "upgrade PostgreSQL")
    if encoding != "UTF8":
        return check.problem(f"the database has the encoding {encoding}", "create one with the encoding UTF8")
    if standby:
        return check.problem(
            f"PostgreSQL {version} is a standby, which cannot be written",
            "name all hosts, and add target_session_attrs=read-write to the URL",
        )
    return check.ok(f"PostgreSQL {version}, encoding {encoding}")


def rights(database: Database, check: Check) -> Finding:
    """Whether the role may do what a server does."""
    exists, create, temporary = database.row(
        "SELECT to_regnamespace(quote_ident(%s)) IS NOT NULL, has_database_privilege(current_database(), 'CREATE'), "
        "has_database_privilege(current_database(), 'TEMP')",
        database.schema,
    )
    if not exists:
        if create:
            return check.ok(f"this role may create schema {database.schema}")
        return check.problem(
            f"there is no schema {database.schema}, and this role may not create it",
            f"create it for this role: CREATE SCHEMA {database.schema} AUTHORIZATION role",
        )
    missing = [*_missing_on_schema(database), *_missing_on_tables(database)]
    if missing:
        return check.problem(f"this role lacks {', '.join(missing)}", "run servers as the role that owns the tables")
    if not temporary:
        return check.warning("this role may not create temporary tables", "`geartrain load` needs that: GRANT TEMP")
    return check.ok(f"this role may read and write schema {database.schema}")


def _missing_on_schema(database: Database) -> Iterator[str]:
    for right in ("USAGE", "CREATE"):
        if not database.row("SELECT has_schema_privilege(%s, %s)", database.schema, right)[0]:
            yield f"{right} on schema {database.schema}"


def _missing_on_tables(database: Database) -> Iterator[str]:
    statement = (
        "SELECT tablename, right_name FROM pg_tables, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) right_name "
        "WHERE schemaname = %s AND tablename = ANY(%s) "
        "AND NOT has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), right_name)"
    )
    for table, right in database.query(statement, database.schema, list(_TABLES)):
        yield f"{right} on table {table}"


def safety(database: Database, check: Check) -> Finding:
    """Whether what PostgreSQL has committed survives a crash of its machine."""
    fsync, full_pages, synchronous = database.row(
        "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')"
    )
    for name, value in (("fsync", fsync), ("full_page_writes", full_pages)):
        if value == "off":
            return check.problem(
                f"{name} is off: acknowledged jobs, or the whole database, are lost when its machine crashes",
                f"set {name} = on in postgresql.conf",
            )
    if synchronous == "off":
        return check.warning(
            "synchronous_commit is off; Geartrain turns it on for its own transactions",
            "set synchronous_commit = on, unless other programs need it off",
        )
    return check.ok(f"fsync and full_page_writes are on, synchronous_commit is {synchronous}")


def standbys(database: Database, check: Check) -> Finding:
    """Whether a second machine has what is committed."""
    wanted = database.row("SELECT current_setting('synchronous_standby_names')")[0]
    count, synchronous, hidden = database.row(
        "SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), "
        "count(*) FILTER (WHERE sync_state IS NULL) FROM pg_stat_replication"
    )
    if hidden:
        return check.ok(f"{count} connected; this role cannot see whether they are synchronous")
    if wanted and not synchronous:
        return check.problem(
            f"synchronous_standby_names is {wanted!r} and no such standby is connected: commits wait for one",
            "start the standby, or change synchronous_standby_names",
        )
    if synchronous:
        return check.ok(f"{count} connected, {synchronous} of them synchronous")
    if count:
        return check.warning(
            f"{count} connected, none of them synchronous: after a failover, acknowledged jobs may be missing",
            "set synchronous_standby_names; servers that live write again what is missing, those that died cannot",
        )
    return check.ok("none: jobs are as safe as the disk of this one PostgreSQL")


def connections(database: Database, check: Check) -> Finding:
    """Whether servers find room."""
    most, reserved, used = database.row(
        "SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int, "
        "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
    )
    text = f"{used} in use, at most {most}"
    if most - reserved - used < _FEW_CONNECTIONS:
        return check.warning(text, "raise max_connections, or put PgBouncer between: each server uses up to six")
    return check.ok(text)


def old_transactions(database: Database, check: Check) -> Finding:
    """What keeps PostgreSQL from removing dead rows."""
    holders = [holder for holder in postgresql_xmin.holders(database.connection) if holder.seconds > _OLD_SECONDS]
    slots = [slot for slot in postgresql_xmin.slots(database.connection) if slot.transactions > _OLD_TRANSACTIONS]
    texts = [f"{holder.what} is {holder.seconds / 60:.0f} minutes old" for holder in holders]
    texts += [f"replication slot {slot.name} holds back {slot.transactions:,} transactions" for slot in slots]
    if texts:
        return check.warning(
            f"{'; '.join(texts)}: dead rows stay, and tables grow",
            "end the transaction (pg_terminate_backend, ROLLBACK PREPARED), or drop a slot that nobody uses",
        )
    sees_all = database.row("SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')")[0]
    if not sees_all:
        return check.ok(f"none of this role is older than 10 minutes ({_SEE_ALL})")
    return check.ok("none is older than 10 minutes")


def layout(database: Database, check: Check) -> Finding:
    """Whether this version can use the tables."""
    found, newest = read_layout(database.connection, database.schema), len(MIGRATIONS)
    if not found:
        return check.ok(f"schema {database.schema} has no tables yet; the first server creates them")
    if found > newest:
        oldest = read_oldest_layout(database.connection, database.schema)
        if newest < oldest:
            return check.problem(f"layout {found} is from a newer version of Geartrain", "install the newer version")
        return check.warning(f"layout {found}, which is newer than this version", "upgrade this server soon")
    if found < newest:
        return check.ok(f"layout {found}; the next server that starts migrates it to {newest}")
    return check.ok(f"layout {found} in schema {database.schema}")


def vacuum(database: Database, check: Check) -> Finding:
    """Whether dead rows are removed."""
    if "off" in database.row("SELECT current_setting('autovacuum'), current_setting('track_counts')"):
        return check.problem(
            "autovacuum is off: tables grow until the disk is full", "set autovacuum = on and track_counts = on"
        )
    statement = (
        "SELECT relname, n_live_tup, n_dead_tup, "
        "extract(epoch FROM now() - greatest(last_vacuum, last_autovacuum))::float8 "
        "FROM pg_stat_user_tables WHERE schemaname = %s ORDER BY n_dead_tup DESC"
    )
    rows = database.query(statement, database.schema).fetchall()
    for name, live, dead, _ in rows:
        if dead > _MANY_DEAD and dead > live:
            return check.warning(
                f"{dead:,} of {live + dead:,} rows of table {name} are dead",
                "look for an old transaction above; if there is none, VACUUM the table and watch autovacuum",
            )
    last = {name: age for name, _, _, age in rows}.get("jobs")
    when = f"table jobs was vacuumed {last / 60:.0f} minutes ago" if last is not None else "nothing to remove yet"
    return check.ok(f"autovacuum is on, {sum(row[2] for row in rows):,} dead rows; {when}")


def sizes(database: Database, check: Check) -> Finding:
    """How much disk the tables use, indexes included."""
    statement = (
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = to_regnamespace(quote_ident(%s)) ORDER BY 2 DESC"
    )
    rows = database.query(statement, database.schema).fetchall()
    largest = ", ".join(f"{name} {store_file.shown_size(size)}" for name, size in rows[:3])
    return check.ok(f"{store_file.shown_size(sum(size for _, size in rows))}: {largest}")


_BEFORE_TABLES: Final[tuple[tuple[str, DatabaseCheck], ...]] = (
    ("server", server),
    ("rights", rights),
    ("safety", safety),
    ("standbys", standbys),
    ("connections", connections),
    ("transactions", old_transactions),
)
_OF_TABLES: Final[tuple[tuple[str, DatabaseCheck], ...]] = (("vacuum", vacuum), ("sizes", sizes))
