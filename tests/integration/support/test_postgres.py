"""Real clusters: committed rows outlive the postmaster, and nothing outlives the test run."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support import postgres, postgres_programs, scratch
from tests.support.postgres_fixtures import Clusters
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[3]
VERSIONS = [pytest.param(version, marks=pytest.mark.peer(name)) for version, name in PEERS.items()]
needs_newest = pytest.mark.peer(PEERS[NEWEST])

START_AND_TELL = """
import sys
from tests.support import postgres
with postgres.running() as cluster:
    print(cluster.folder.parent, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_tests_share_the_cluster_of_a_version(clusters: Clusters, version: int) -> None:
    cluster = clusters(version)
    ((number,),) = cluster.query("SHOW server_version_num")
    assert int(number) // 10000 == version
    assert clusters(version) is cluster


@pytest.mark.parametrize("version", VERSIONS)
def test_both_forms_of_the_url_lead_there(clusters: Clusters, version: int) -> None:
    cluster = clusters(version)
    for url in (cluster.url(), cluster.socket_url()):
        with psycopg.connect(url) as connection:
            assert connection.execute("SHOW data_directory").fetchone() == (str(cluster.folder),)


@needs_newest
def test_a_database_is_empty_and_gone_afterwards(cluster: postgres.Cluster) -> None:
    with postgres.fresh_database(cluster) as name:
        cluster.query("CREATE TABLE t (n int)", name)
    with postgres.fresh_database(cluster) as other, cluster.connect(other) as connection:
        assert connection.execute("SELECT to_regclass('t')").fetchone() == (None,)
    left = cluster.query("SELECT datname FROM pg_database WHERE datname LIKE 'test%'")
    assert not {(name,), (other,)} & set(left)


@needs_newest
def test_a_schema_is_not_there_yet_and_is_dropped_with_its_tables(cluster: postgres.Cluster) -> None:
    with postgres.fresh_schema(cluster) as name:
        cluster.query(f"CREATE SCHEMA {name}")
        cluster.query(f"CREATE TABLE {name}.t (n int)")
    assert cluster.query(f"SELECT to_regnamespace('{name}')") == [(None,)]


@pytest.fixture
def own_cluster() -> Iterator[postgres.Cluster]:
    with postgres.running() as cluster:
        yield cluster


@needs_newest
def test_committed_rows_outlive_a_killed_postmaster(own_cluster: postgres.Cluster) -> None:
    own_cluster.query("CREATE TABLE t (n int)")
    with psycopg.connect(own_cluster.url()) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        connection.execute("INSERT INTO t VALUES (2)")
        port = own_cluster.port
        own_cluster.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    assert scratch.processes_in(own_cluster.folder) == []
    own_cluster.start()
    assert own_cluster.port == port
    assert own_cluster.query("SELECT n FROM t") == [(1,)]


@needs_newest
def test_settings_of_a_cluster_of_its_own() -> None:
    with postgres.running(fsync="off") as cluster:
        assert cluster.query("SHOW fsync") == [("off",)]


@needs_newest
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_test_run_leaves_nothing_behind(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START_AND_TELL], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = run.stdout.readline().strip()
        assert scratch.processes_in(Path(folder)) != []
        run.send_signal(number)
    wait_for(lambda: not Path(folder).exists(), "the folder is removed")
    assert scratch.processes_in(Path(folder)) == []


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(AssertionError, match="PostgreSQL 7 is not installed"):
        postgres_programs.find(7)
