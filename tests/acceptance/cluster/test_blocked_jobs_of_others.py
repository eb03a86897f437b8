"""Jobs that wait for others move with them to a server that takes over, and wait there."""

from tests.acceptance.cluster.conftest import POSTGRESQL, member
from tests.support import serving
from tests.support.http_peer import Peer
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL


def http(server: serving.ServerProcess) -> Peer:
    return Peer(server.urls[1])


def test_a_job_waits_on_when_its_home_dies(schema_url: str) -> None:
    with member(schema_url, "two", "--lease", "2s") as two:
        with member(schema_url, "one", "--lease", "2s") as one:
            peer = http(one)
            members = [peer.submit("f", f"member {number}", delay=number)["handle"] for number in range(3)]
            peer.submit("f", "callback", after=members)
            worker = peer.worker("f")
            worker.complete(worker.claim()["handle"])
            peer.call("POST", "/jobs", {"function": "f", "payload": "later", "delay": 1000})  # after that end
            one.kill()
        peer = http(two)
        wait_for(lambda: peer.call("GET", "/functions/f?local=true").status == 200, "it has the function")
        wait_for(lambda: peer.get("/functions/f?local=true")["blocked"] == 1, "it has taken the jobs over")
        worker = peer.worker("f")
        turns = []
        while not turns or turns[-1] != "callback":
            job = worker.claim(wait=30)
            turns.append(job["payload"])
            worker.complete(job["handle"])
        assert turns == ["member 1", "member 2", "callback"]


def test_a_job_of_another_server_is_not_waited_for(schema_url: str) -> None:
    with member(schema_url, "one") as one, member(schema_url, "two") as two:
        parent = http(one).submit("f")["handle"]
        refused = http(two).call("POST", "/jobs", {"function": "f", "after": [parent]})
        assert refused.status == 404
        assert "it must belong to the server that accepts the job which waits for it" in refused.json["detail"]
