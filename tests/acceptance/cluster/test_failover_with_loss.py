"""A failover to a standby that was behind, while a server stands still: no acknowledged job is lost with the server."""

import signal

from geartrain.store.shared import FENCED
from tests.acceptance.cluster.conftest import POSTGRESQL, member
from tests.chaos.members import FENCES
from tests.support import postgres_proxy, serving
from tests.support.http_peer import Peer
from tests.support.postgres import Cluster
from tests.support.postgres_pair import Pair
from tests.support.postgres_proxy import CuttingProxy
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

RESCUED = "submitted jobs again that the database had lost"
CANNOT_START = "cannot start with jobs that the database may lack"


def http(server: serving.ServerProcess) -> Peer:
    return Peer(server.urls[1])


def test_a_fenced_server_submits_again_what_the_database_has_lost() -> None:
    with Pair(synchronous=False) as pair:
        url = pair.url_with(schema="jobs")
        with member(url, "two", "--lease", "2s") as two, member(url, "one", "--lease", "2s") as one:
            peer = http(one)
            kept = {peer.submit("f", f"kept {number}")["handle"]: f"kept {number}" for number in range(3)}
            ended = peer.submit("g", "ended")["handle"]
            pair.leave_behind()
            lost = {
                peer.submit("f", f"lost {number}", unique=f"key {number}")["handle"]: f"lost {number}"
                for number in range(5)
            }
            parent = next(iter(lost))
            blocked = peer.submit("f", "after a lost one", after=[parent])["handle"]
            worker = peer.worker("g")
            worker.complete(worker.claim()["handle"])
            one.signal(signal.SIGSTOP)
            pair.fail_over()
            wait_for(lambda: FENCES.format("one") in two.stderr, "the other one has fenced it")
            one.signal(signal.SIGCONT)
            wait_for(lambda: RESCUED in one.stderr, "it has brought its jobs along")
            expected = {**kept, **lost, blocked: "after a lost one"}
            worker = http(two).worker("f")
            ran: dict[str, str] = {}
            while len(ran) < len(expected):
                job = worker.claim(wait=60)
                assert job["handle"] not in ran, "it runs twice"
                ran[job["handle"]] = job["payload"]
                worker.complete(job["handle"])
            assert ran == expected
            order = list(ran.values())
            assert order.index(lost[parent]) < order.index("after a lost one")
            assert ended not in ran
            assert worker.claim() is None


def test_a_server_that_was_fenced_starts_again_until_its_jobs_are_written(
    cluster: Cluster, schema: str, schema_url: str
) -> None:
    """Its start fails once. No other process knows its jobs, so it must not end, whatever PostgreSQL does."""
    with (
        CuttingProxy(cluster.port) as proxy,
        member(schema_url, "two", "--lease", "60s") as two,
        member(proxy.url(schema=schema), "one", "--lease", "60s") as one,
    ):
        lost = [http(one).submit("f", f"lost {number}")["handle"] for number in range(3)]
        proxy.cut_at(postgres_proxy.statement("nodes (name, link"))
        cluster.query(f"DELETE FROM {schema}.jobs")
        cluster.query(f"UPDATE {schema}.nodes SET state = {FENCED}, batch = 0 WHERE name = 'one'")
        proxy.wait_until_cut()
        wait_for(lambda: CANNOT_START in one.stderr, "it could not start")
        wait_for(lambda: RESCUED in one.stderr, "it has brought its jobs along")
        worker = http(two).worker("f")
        assert sorted(worker.claim(wait=60)["handle"] for _ in lost) == sorted(lost)


def test_a_server_that_is_stopped_as_it_starts_again_ends(cluster: Cluster, schema: str) -> None:
    with CuttingProxy(cluster.port) as proxy, member(proxy.url(schema=schema), "one", "--lease", "60s") as one:
        http(one).submit("f", "lost")

        def no_start(message: postgres_proxy.Message) -> bool:
            if "NODES (NAME, LINK" not in message.statement:
                return False
            proxy.cut_off()
            return True

        proxy.cut_at(no_start)
        cluster.query(f"DELETE FROM {schema}.jobs")
        cluster.query(f"UPDATE {schema}.nodes SET state = {FENCED}, batch = 0")
        wait_for(lambda: CANNOT_START in one.stderr, "it could not start")
        one.signal(signal.SIGTERM)
        assert one.wait() != 0
        assert "start failed" in one.stderr or "cannot open" in one.stderr
