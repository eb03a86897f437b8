"""The proxy cuts exactly where it says, whether statements go one by one or in a pipeline."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.support import postgres
from tests.support.postgres_messages import Side
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.postgres_proxy import CuttingProxy, commit, commit_answer, copy_data, statement
from tests.support.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.peer(PEERS[NEWEST])

Insert = Callable[[psycopg.Connection[tuple[int]], str], None]


def one_by_one(connection: psycopg.Connection[tuple[int]], table: str) -> None:
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO {table} VALUES (1)".encode())
    connection.execute("COMMIT")


def in_a_pipeline(connection: psycopg.Connection[tuple[int]], table: str) -> None:
    with connection.pipeline():
        one_by_one(connection, table)


def by_copy(connection: psycopg.Connection[tuple[int]], table: str) -> None:
    connection.execute("BEGIN")
    with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
        copy.write(b"1\n")
    connection.execute("COMMIT")


WAYS = pytest.mark.parametrize("insert", [one_by_one, in_a_pipeline, by_copy])


@pytest.fixture
def proxy(cluster: postgres.Cluster) -> Iterator[CuttingProxy]:
    with CuttingProxy(cluster.port) as proxy:
        yield proxy


@pytest.fixture
def table(cluster: postgres.Cluster, schema: str) -> str:
    cluster.query(f"CREATE SCHEMA {schema}")
    cluster.query(f"CREATE TABLE {schema}.t (n int)")
    return f"{schema}.t"


@contextlib.contextmanager
def connected(proxy: CuttingProxy, sslmode: str = "disable") -> Iterator[psycopg.Connection[tuple[int]]]:
    with psycopg.connect(proxy.url(sslmode=sslmode, gssencmode="disable"), autocommit=True) as connection:
        yield connection


def rows(cluster: postgres.Cluster, table: str) -> int:
    return len(cluster.query(f"SELECT n FROM {table}"))


def wait_until_nobody_writes(cluster: postgres.Cluster, table: str) -> None:
    """A backend may take a moment to notice that its program is gone."""
    held = f"SELECT 1 FROM pg_locks WHERE relation = '{table}'::regclass AND mode = 'RowExclusiveLock'"
    wait_for(lambda: not cluster.query(held), "the transaction ends")


@WAYS
@pytest.mark.parametrize("sslmode", ["disable", "prefer"])  # which asks about encryption first
def test_everything_passes_until_it_is_told_to_cut(
    cluster: postgres.Cluster, proxy: CuttingProxy, table: str, insert: Insert, sslmode: str
) -> None:
    with connected(proxy, sslmode) as connection:
        insert(connection, table)
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert rows(cluster, table) == 1
    assert sum(map(commit, proxy.seen)) == sum(map(commit_answer, proxy.seen)) == 1


@WAYS
def test_cut_before_commit_rolls_back(
    cluster: postgres.Cluster, proxy: CuttingProxy, table: str, insert: Insert
) -> None:
    proxy.cut_at(commit)
    with pytest.raises(psycopg.OperationalError), connected(proxy) as connection:
        insert(connection, table)
    proxy.wait_until_cut()
    wait_until_nobody_writes(cluster, table)
    assert rows(cluster, table) == 0


@WAYS
def test_cut_before_the_answer_to_commit_has_committed(
    cluster: postgres.Cluster, proxy: CuttingProxy, table: str, insert: Insert
) -> None:
    proxy.cut_at(commit_answer)
    with pytest.raises(psycopg.OperationalError), connected(proxy) as connection:
        insert(connection, table)
    proxy.wait_until_cut()
    assert rows(cluster, table) == 1


@WAYS
def test_a_commit_that_outlives_its_connection_arrives_when_it_is_released(
    cluster: postgres.Cluster, proxy: CuttingProxy, table: str, insert: Insert
) -> None:
    proxy.cut_at(commit, outlive=True)
    with pytest.raises(psycopg.OperationalError), connected(proxy) as connection:
        insert(connection, table)
    proxy.wait_until_cut()
    assert rows(cluster, table) == 0
    proxy.release()
    wait_for(lambda: rows(cluster, table) == 1, "the commit arrives")


def test_cut_inside_copy_rolls_back(cluster: postgres.Cluster, proxy: CuttingProxy, table: str) -> None:
    proxy.cut_at(copy_data)
    with pytest.raises(psycopg.OperationalError), connected(proxy) as connection:
        by_copy(connection, table)
    wait_until_nobody_writes(cluster, table)
    assert rows(cluster, table) == 0


def test_stop_inside_copy_holds_the_rows_back_until_it_is_resumed(
    cluster: postgres.Cluster, proxy: CuttingProxy, table: str
) -> None:
    struck = threading.Event()
    proxy.stop_at(copy_data, struck.set)
    with connected(proxy) as connection:
        program = threading.Thread(target=by_copy, args=(connection, table))
        program.start()
        proxy.wait_until_cut()
        assert struck.is_set()
        copying = "SELECT tuples_processed FROM pg_stat_progress_copy"
        wait_for(lambda: cluster.query(copying) == [(0,)], "PostgreSQL waits for rows")
        proxy.resume()
        program.join(PATIENCE)
        assert not program.is_alive()
    assert rows(cluster, table) == 1


def test_a_cut_is_made_once(cluster: postgres.Cluster, proxy: CuttingProxy, table: str) -> None:
    proxy.cut_at(statement(f"insert into {table}"))
    with pytest.raises(psycopg.OperationalError), connected(proxy) as connection:
        one_by_one(connection, table)
    with connected(proxy) as connection:
        one_by_one(connection, table)
    assert rows(cluster, table) == 1


@pytest.mark.parametrize("side", list(Side))
def test_a_stopped_direction_passes_nothing_until_it_is_resumed(
    cluster: postgres.Cluster, proxy: CuttingProxy, table: str, side: Side
) -> None:
    with connected(proxy) as connection:
        proxy.stop(side)
        program = threading.Thread(target=one_by_one, args=(connection, table))
        program.start()
        proxy.wait_until_seen(statement("begin") if side is Side.CLIENT else lambda message: message.tag == "BEGIN")
        assert program.is_alive()
        proxy.resume()
        program.join(PATIENCE)
        assert not program.is_alive()
    assert rows(cluster, table) == 1


def test_a_delayed_direction_passes_everything(cluster: postgres.Cluster, proxy: CuttingProxy, table: str) -> None:
    proxy.delay(Side.SERVER, 0.01)
    with connected(proxy) as connection:
        one_by_one(connection, table)
    assert rows(cluster, table) == 1


def test_cut_off_until_it_is_restored(cluster: postgres.Cluster, proxy: CuttingProxy, table: str) -> None:
    with connected(proxy) as connection:
        proxy.cut_off()
        with pytest.raises(psycopg.OperationalError):
            one_by_one(connection, table)
    with pytest.raises(psycopg.OperationalError), connected(proxy):
        pass
    proxy.restore()
    with connected(proxy) as connection:
        one_by_one(connection, table)
    assert rows(cluster, table) == 1
