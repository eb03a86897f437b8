"""A failover to a standby that was behind, while a server stands still: no acknowledged job is lost with the server."""

import signal

from tests.acceptance.cluster.conftest import POSTGRESQL, member
from tests.chaos.members import FENCES
from tests.support import serving
from tests.support.http_peer import Peer
from tests.support.postgres_pair import Pair
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

RESCUED = "submitted jobs again that the database had lost"


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
