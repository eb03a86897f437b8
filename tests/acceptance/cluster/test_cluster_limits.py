"""Limits hold at all servers when they are acknowledged, and a server that takes jobs over has their partitions."""

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.acceptance.cluster.test_views import linked
from tests.support import serving
from tests.support.gearman_peer import Kind, worker
from tests.support.gearman_peer import Peer as GearmanPeer
from tests.support.http_peer import Peer
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL
__all__ = ("linked",)


def http(server: serving.ServerProcess) -> Peer:
    return Peer(server.urls[1])


def turns(server: serving.ServerProcess, function: bytes, count: int) -> list[bytes]:
    """The payloads of so many jobs, one after another."""
    with worker(server.port, function) as taker:
        found = []
        for _ in range(count):
            job = taker.grab()
            found.append(job.data)
            taker.send(Kind.WORK_COMPLETE, job.handle, b"")
        taker.silence()
        return found


def test_a_limit_holds_at_both_servers_when_it_is_acknowledged(linked: Pair) -> None:
    one, two = linked
    assert http(one).call("PATCH", "/functions/limited/limits", {"max_running": 1}).status == 200
    assert http(two).get("/functions/limited?local=true")["running_limits"]["max_running"] == 1
    for payload in ("first", "second"):
        http(two).submit("limited", payload)
    with worker(two.port, b"limited") as taker:
        assert taker.grab().data == b"first"
        assert taker.take() is None
    assert http(two).call("PATCH", "/functions/limited/limits", {"max_running": -1}).status == 200
    assert http(one).get("/functions/limited?local=true")["running_limits"]["max_running"] is None
    assert sorted(turns(two, b"limited", 2)) == [b"first", b"second"]


def test_partitions_survive_the_death_of_their_home(schema_url: str) -> None:
    with member(schema_url, "two", "--lease", "2s") as two:
        with member(schema_url, "one", "--lease", "2s") as one:
            for number in range(3):
                http(one).submit("tenants", f"large{number}", partition="large")
            http(one).submit("tenants", "small", partition="small")
            one.kill()
        wait_for(lambda: http(two).call("GET", "/functions/tenants?local=true").status == 200, "it has the function")
        wait_for(lambda: http(two).get("/functions/tenants?local=true")["queued"] == 4, "it has taken the jobs over")
        assert turns(two, b"tenants", 4) == [b"large0", b"small", b"large1", b"large2"]


def is_full(server: serving.ServerProcess, function: str) -> bool:
    """Whether the server refuses another job; one that it takes is cancelled."""
    answer = http(server).call("POST", "/jobs", {"function": function, "payload": ""})
    if answer.status == 201:
        assert http(server).call("POST", f"/jobs/{answer.json['handle']}/cancel").status == 200
    else:
        assert answer.status == 429, answer.json
    return answer.status != 201


def test_a_full_queue_is_full_at_every_server(linked: Pair) -> None:
    one, two = linked
    assert http(one).call("PUT", "/functions/full/limits", {"normal": 3}).status == 200
    for server in (one, two, two):
        http(server).submit("full", "payload")
    for server in linked:
        wait_for(lambda server=server: is_full(server, "full"), "it has heard of the others' jobs")  # type: ignore[misc]
    turns(one, b"full", 3)  # of both servers: those of the other one are lent
    for server in linked:
        wait_for(lambda server=server: not is_full(server, "full"), "it has heard of their ends")  # type: ignore[misc]


def test_a_limit_of_one_server_counts_the_jobs_of_all(linked: Pair) -> None:
    """`maxqueue` of Gearman is about the server that is asked; its limit is about all jobs nevertheless."""
    one, two = linked
    for _ in range(2):
        http(two).submit("short", "payload")
    with GearmanPeer(one.port) as admin:
        admin.text("create function short").line()
        admin.text("maxqueue short 2")
        assert admin.line() == b"OK\r\n"
    wait_for(lambda: is_full(one, "short"), "it has heard of the other's jobs")
    assert not is_full(two, "short")
    turns(one, b"short", 2)
    wait_for(lambda: not is_full(one, "short"), "it has heard of their ends")
