"""A real PgBouncer in transaction mode: transactions pass, sessions do not, and it can be restarted."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support import pgbouncer, postgres
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres_programs import NEWEST, PEERS

pytestmark = pytest.mark.peer(PEERS[NEWEST], pgbouncer.PEER)


@pytest.fixture
def pooler(cluster: postgres.Cluster) -> Iterator[PgBouncer]:
    with PgBouncer(cluster.port, pool_size=1) as pooler:
        yield pooler


def test_a_transaction_passes(cluster: postgres.Cluster, pooler: PgBouncer, schema: str) -> None:
    with psycopg.connect(pooler.url(), prepare_threshold=None) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"CREATE TABLE {schema}.t (n int)".encode())
        with connection.cursor().copy(f"COPY {schema}.t FROM STDIN".encode()) as copy:
            copy.write(b"1\n2\n")
        connection.commit()
        connection.execute(f"DELETE FROM {schema}.t".encode())
        connection.rollback()
    assert cluster.query(f"SELECT n FROM {schema}.t") == [(1,), (2,)]


def test_clients_share_one_connection_between_transactions(pooler: PgBouncer) -> None:
    with (
        psycopg.connect(pooler.url(), autocommit=True) as one,
        psycopg.connect(pooler.url(), autocommit=True) as other,
    ):
        backends = [each.execute("SELECT pg_backend_pid()").fetchone() for each in (one, other, one)]
    assert len(set(backends)) == 1


def test_a_restart_drops_clients_and_serves_new_ones(pooler: PgBouncer) -> None:
    with psycopg.connect(pooler.url(), autocommit=True) as connection:
        connection.execute("SELECT 1")
        pooler.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(pooler.url())
        pooler.start()
    with psycopg.connect(pooler.url()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
