"""`geartrain doctor` on PostgreSQL stores that are well, and on ones that are not."""

import contextlib
from collections.abc import Iterator

import psycopg
import pytest

from geartrain.maintenance.doctor import postgresql, postgresql_servers
from geartrain.maintenance.doctor.database import Database
from geartrain.maintenance.doctor.finding import Check, Finding, Level
from geartrain.store.contract import Batch, row
from geartrain.store.postgresql import PostgresqlStore
from geartrain.store.postgresql_schema import MIGRATIONS
from geartrain.store.shared import Member
from tests.contract.stores.factories import job
from tests.support import postgres, postgres_pair, postgres_programs
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url

VERSIONS = [pytest.param(version, marks=pytest.mark.peer(peer)) for version, peer in postgres_programs.PEERS.items()]
pytestmark = pytest.mark.peer(postgres_programs.PEERS[postgres_programs.NEWEST])
ALL = (
    "connection", "server", "rights", "safety", "standbys", "connections", "transactions", "layout", "vacuum", "sizes",
    "servers", "orphans", "jobs", "broken rows",
)  # fmt: skip


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[postgres.Cluster]:
    """With the settings that PostgreSQL comes with."""
    with postgres.running(request.param) as cluster:
        yield cluster


def examined(url: str) -> dict[str, Finding]:
    return {finding.check: finding for finding in postgresql.examine(url)}


@contextlib.contextmanager
def opened(url: str, name: str = "one") -> Iterator[PostgresqlStore]:
    """A server's store, without the server."""
    store = PostgresqlStore(url, member=Member(name=name, machine="here"))
    store.open()
    try:
        yield store
    finally:
        store.close(0)


def test_a_store_that_is_well(cluster: postgres.Cluster, schema_url: str) -> None:
    with opened(schema_url):
        found = examined(schema_url)
    assert tuple(found) == ALL
    assert {name: finding for name, finding in found.items() if finding.level is not Level.OK} == {}
    assert found["server"].text.startswith(f"PostgreSQL {cluster.programs.version}")
    assert found["servers"].text.startswith("one (serving, leader")
    assert found["layout"].text == f"layout {len(MIGRATIONS)} in schema {schema_url.rpartition('=')[2]}"


def test_before_the_first_start(schema_url: str) -> None:
    found = examined(schema_url)
    assert tuple(found) == ALL[: ALL.index("layout") + 1]
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert "the first server creates them" in found["layout"].text


def test_nobody_answers() -> None:
    (finding,) = postgresql.examine("postgresql://ada@127.0.0.1:1/jobs")
    assert finding.level is Level.PROBLEM
    assert "postgresql://ada@127.0.0.1:1/jobs: " in finding.text
    assert "check that PostgreSQL runs" in finding.advice


def test_a_schema_of_another_program(cluster: postgres.Cluster, schema: str, schema_url: str) -> None:
    cluster.query(f"CREATE SCHEMA {schema}")
    cluster.query(f"CREATE TABLE {schema}.theirs (id int)")
    found = examined(schema_url)
    assert found["layout"].level is Level.PROBLEM
    assert "tables of another program" in found["layout"].text


def test_a_layout_of_a_newer_version(cluster: postgres.Cluster, schema: str, schema_url: str) -> None:
    with opened(schema_url):
        cluster.query(f"UPDATE {schema}.meta SET value = 99 WHERE name = 'layout'")
        assert examined(schema_url)["layout"].level is Level.WARNING
        cluster.query(f"UPDATE {schema}.meta SET value = 99 WHERE name = 'oldest_layout'")
        assert examined(schema_url)["layout"].level is Level.PROBLEM


def test_a_role_that_may_not_write(cluster: postgres.Cluster, schema: str, schema_url: str) -> None:
    with opened(schema_url):
        cluster.query(f"CREATE ROLE reader_{schema} LOGIN")
        try:
            cluster.query(f"GRANT USAGE ON SCHEMA {schema} TO reader_{schema}")
            cluster.query(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader_{schema}")
            found = examined(schema_url.replace("//postgres@", f"//reader_{schema}@"))
            assert found["rights"].level is Level.PROBLEM
            assert f"CREATE on schema {schema}" in found["rights"].text
            assert "DELETE on table jobs" in found["rights"].text
            assert "SELECT on table" not in found["rights"].text
            assert "GRANT pg_read_all_stats" in found["transactions"].text
        finally:
            cluster.query(f"DROP OWNED BY reader_{schema}")
            cluster.query(f"DROP ROLE reader_{schema}")


@pytest.mark.parametrize(
    ("setting", "check", "level"),
    [
        ("fsync", "safety", Level.PROBLEM),
        ("full_page_writes", "safety", Level.PROBLEM),
        ("synchronous_commit", "safety", Level.WARNING),
        ("autovacuum", "vacuum", Level.PROBLEM),
    ],
)
def test_settings_that_lose_jobs_or_space(setting: str, check: str, level: Level) -> None:
    with postgres.running(**{setting: "off"}) as own, opened(own.url()):
        found = examined(own.url())
    assert found[check].level is level
    assert f"{setting} is off" in found[check].text
    assert {name for name, finding in found.items() if finding.level is not Level.OK} == {check}


def test_too_few_connections() -> None:
    with postgres.running(max_connections="8") as own:
        finding = examined(own.url())["connections"]
    assert (finding.level, "at most 8" in finding.text) == (Level.WARNING, True)


def test_standbys() -> None:
    with postgres_pair.Pair() as pair:
        finding = examined(pair.url)["standbys"]
        assert (finding.level, finding.text) == (Level.OK, "1 connected, 1 of them synchronous")
        pair.standby.kill()
        assert examined(pair.url)["standbys"].level is Level.PROBLEM
        pair.standby.start()
        behind = examined(postgres.url("postgres", f"postgres@127.0.0.1:{pair.standby.port}", {}))
        assert behind["server"].level is Level.PROBLEM
        assert "is a standby" in behind["server"].text
    with postgres_pair.Pair(synchronous=False) as pair:
        finding = examined(pair.url)["standbys"]
        assert (finding.level, "none of them synchronous" in finding.text) == (Level.WARNING, True)


@contextlib.contextmanager
def checked(cluster: postgres.Cluster, schema: str) -> Iterator[Database]:
    with cluster.connect() as connection:
        yield Database(connection, schema)


def test_old_transactions(cluster: postgres.Cluster, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is older than nothing is too old."""
    monkeypatch.setattr(postgresql, "_OLD_SECONDS", 0.0)
    with checked(cluster, schema) as database, cluster.connect() as old, old.transaction():
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SET application_name = 'report'")
        old.execute("SELECT 1")
        finding = postgresql.old_transactions(database, Check("transactions"))
    assert finding.level is Level.WARNING
    assert "transaction of postgres (report, pid " in finding.text


def test_a_prepared_transaction_and_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "_OLD_SECONDS", 0.0)
    monkeypatch.setattr(postgresql, "_OLD_TRANSACTIONS", -1)
    with postgres.running(max_prepared_transactions="1", wal_level="logical") as own:
        own.query("SELECT pg_create_logical_replication_slot('unused', 'pgoutput')")
        own.query("CREATE TABLE t (id int)")
        with psycopg.connect(own.socket_url()) as connection:
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("PREPARE TRANSACTION 'forgotten'")
        with checked(own, "geartrain") as database:
            finding = postgresql.old_transactions(database, Check("transactions"))
    assert "prepared transaction forgotten is 0 minutes old" in finding.text
    assert "replication slot unused holds back" in finding.text


def test_dead_rows(cluster: postgres.Cluster, schema: str, schema_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "_MANY_DEAD", 10)
    with opened(schema_url), checked(cluster, schema) as database:
        with database.connection.transaction():  # a role's own counts are written at the end of its session
            database.query("INSERT INTO {s}.kept SELECT n::text, '', 1 FROM generate_series(1, 50) n")
        database.query("DELETE FROM {s}.kept")
        database.query("SELECT pg_stat_force_next_flush()")
        finding = postgresql.vacuum(database, Check("vacuum"))
    assert finding.level is Level.WARNING
    assert "50 of 50 rows of table kept are dead" in finding.text


def test_jobs_without_a_server(cluster: postgres.Cluster, schema: str, schema_url: str) -> None:
    with opened(schema_url) as store:
        batch = Batch()
        batch.accepted = [row(job((store.node << 32) + number)) for number in (1, 2)]
        store.commit(batch)
    with checked(cluster, schema) as database:
        finding = postgresql_servers.orphans(database, Check("orphans"))
        assert (finding.level, finding.text.partition(";")[0]) == (Level.OK, "2 jobs in 1 ranges have no server")
        with opened(schema_url, "two"):
            assert postgresql_servers.orphans(database, Check("orphans")).level is Level.WARNING
            assert postgresql_servers.jobs(database, Check("jobs")).text == "2 unfinished, 0 dead"
            database.query("UPDATE {s}.jobs SET state = 6 WHERE id % 2 = 0")
            assert postgresql_servers.jobs(database, Check("jobs")).text == "1 unfinished, 1 dead"


def test_broken_rows_and_silent_servers(cluster: postgres.Cluster, schema: str, schema_url: str) -> None:
    with opened(schema_url), checked(cluster, schema) as database:
        database.query("ALTER TABLE {s}.broken ALTER COLUMN id SET DEFAULT 7")
        columns = database.query("SELECT * FROM {s}.broken").description
        for column in columns[2:]:
            name = psycopg.sql.Identifier(column.name).as_string(None)
            database.query(f"ALTER TABLE {{s}}.broken ALTER COLUMN {name} DROP NOT NULL")
        database.query("INSERT INTO {s}.broken (complaint) VALUES ('odd')")
        assert postgresql_servers.broken_rows(database, Check("broken rows")).text.startswith("1 rows")
        database.query("UPDATE {s}.nodes SET beat = beat - interval '5 minutes'")
        finding = postgresql_servers.servers(database, Check("servers"))
        assert finding.level is Level.WARNING
        assert "one did not commit for more than a minute" in finding.advice
        assert postgresql_servers.is_running(database, "one", "here")
        assert not postgresql_servers.is_running(database, "one", "elsewhere")
