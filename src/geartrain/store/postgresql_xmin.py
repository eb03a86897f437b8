"""What keeps PostgreSQL from removing dead rows: transactions, prepared ones and replication slots that are old.

A role sees the transactions of others only if it is a member of `pg_read_all_stats` (or `pg_monitor`). Of what a
replication slot holds back, PostgreSQL knows how many transactions ago it was, but not when.
"""

from typing import Final, NamedTuple

from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_schema import one

# VACUUM itself holds nothing back.
_TRANSACTIONS: Final = """
SELECT 'transaction of ' || coalesce(usename, '?') || ' (' || coalesce(nullif(application_name, ''), 'no name') ||
       ', pid ' || pid || ', ' || coalesce(state, '?') || ')',
       extract(epoch FROM clock_timestamp() - xact_start)::float8
FROM pg_stat_activity
WHERE backend_xmin IS NOT NULL AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
      AND backend_type <> 'autovacuum worker'
UNION ALL
SELECT 'prepared transaction ' || gid, extract(epoch FROM clock_timestamp() - prepared)::float8 FROM pg_prepared_xacts
ORDER BY 2 DESC
"""
_SLOTS: Final = """
SELECT slot_name, age(coalesce(xmin, catalog_xmin)) FROM pg_replication_slots
WHERE coalesce(xmin, catalog_xmin) IS NOT NULL ORDER BY 2 DESC
"""


class Holder(NamedTuple):
    """A transaction that keeps dead rows from being removed."""

    what: str  # it is, for people
    seconds: float  # since it began


class Slot(NamedTuple):
    """A replication slot that does."""

    name: str
    transactions: int  # since


def holders(connection: Connection) -> list[Holder]:
    """The transactions that hold dead rows back, the oldest first."""
    return [Holder(*row) for row in connection.execute(_TRANSACTIONS)]


def slots(connection: Connection) -> list[Slot]:
    """The replication slots that do, the oldest first."""
    return [Slot(*row) for row in connection.execute(_SLOTS)]


def oldest_age(connection: Connection) -> float:
    """The age of the oldest transaction, in seconds; 0 without one."""
    oldest = one(connection.execute(f"SELECT coalesce(max(age), 0) FROM ({_TRANSACTIONS}) AS holders (what, age)"))
    return max(float(oldest[0]), 0.0)
