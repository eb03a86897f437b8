"""Metrics of servers that share a store."""

import subprocess

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.support import postgres, serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.metrics import SUFFIXES, documented, scrape, value
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

PREFIX = "geartrain_"


def http(server: serving.ServerProcess) -> HttpPeer:
    return HttpPeer(server.urls[1])


def test_the_page_lists_exactly_the_metrics(pair: Pair) -> None:
    wait_for(lambda: "geartrain_link_round_trip_seconds" in scrape(http(pair[0])), "they have a link")
    found = {SUFFIXES.sub("", name) for name in scrape(http(pair[0]))}
    assert set(documented("A cluster")) <= found
    assert found <= set(documented())


@pytest.mark.peer("promtool")
def test_promtool_finds_nothing(pair: Pair) -> None:
    metrics = http(pair[0]).ask("GET", "/metrics").data
    done = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_servers_leader_and_lease(pair: Pair) -> None:
    for server in pair:
        wait_for(lambda server=server: value(scrape(http(server)), "geartrain_cluster_nodes") == 2, "2 servers")  # type: ignore[misc]
        assert 0 < value(scrape(http(server)), "geartrain_lease_left_seconds") <= 60
    first, second = (scrape(http(server)) for server in pair)
    assert [value(found, "geartrain_cluster_leader") for found in (first, second)] == [1, 0]
    assert "geartrain_store_xmin_age_seconds" in first
    assert "geartrain_store_xmin_age_seconds" not in second
    for outcome in ("committed", "repeated"):
        assert value(first, "geartrain_commits_in_doubt_total", outcome=outcome) == 0


def test_a_lent_job(own_pair: Pair) -> None:
    one, two = own_pair
    with worker(two.port, b"f") as taker, Peer(one.port) as client:
        taker.send(Kind.PRE_SLEEP)
        client.submit(b"f", b"", b"", kind=Kind.SUBMIT_JOB_BG)
        taker.expect(Kind.NOOP)
        handle = taker.grab().handle
        names = ("home_jobs", "lent_jobs", "borrowed_jobs")
        for server, expected in ((one, [1, 1, 0]), (two, [0, 0, 1])):
            metrics = scrape(http(server))
            assert [value(metrics, PREFIX + name) for name in names] == expected
            running = value(metrics, "geartrain_jobs", function="f", state="running")
            workers = value(metrics, "geartrain_function_workers", function="f")
            assert (running, workers) == (expected[0], 1 - expected[0])
        taker.send(Kind.WORK_COMPLETE, handle, b"")
    wait_for(lambda: value(scrape(http(one)), "geartrain_home_jobs") == 0, "the job has ended")


def test_a_takeover_is_counted(own_pair: Pair) -> None:
    one, two = own_pair
    with Peer(one.port) as client:
        for _ in range(3):
            client.submit(b"f", b"", b"", kind=Kind.SUBMIT_JOB_BG)
    one.kill()
    names = ("servers_fenced_total", "takeovers_total", "taken_over_jobs_total", "cluster_nodes", "cluster_leader")
    expected = [1, 1, 3, 1, 1]

    def found() -> list[float]:
        metrics = scrape(http(two))
        return [value(metrics, f"{PREFIX}{name}") for name in names]

    wait_for(lambda: found() == expected, "the takeover is counted")


def test_the_oldest_transaction(cluster: postgres.Cluster, schema_url: str) -> None:
    """One that began before the server asks for the first time."""
    with cluster.connect() as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        (began,) = connection.execute("SELECT extract(epoch FROM now())::float8").fetchone() or (0,)
        with member(schema_url, "one") as server:
            wait_for(lambda: "geartrain_store_xmin_age_seconds" in scrape(http(server)), "it leads")
            age = value(scrape(http(server)), "geartrain_store_xmin_age_seconds")
            (now,) = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone() or (0,)
            started = http(server).get("/system")["started_at"]
    assert started - began < age <= now - began


def test_without_a_shared_store_there_are_none() -> None:
    with serving.serve("--store", "memory", "--listen", f"http://{serving.HOST}:0") as server:
        found = {SUFFIXES.sub("", name) for name in scrape(HttpPeer(server.url))}
    assert not found & set(documented("A cluster"))
