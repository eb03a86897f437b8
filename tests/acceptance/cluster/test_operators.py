"""What operators see of a cluster, and do to its servers: `geartrain cluster`, `drain` and `fence`."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.support import postgres, serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

FUNCTION = b"f"


def http(server: serving.ServerProcess) -> HttpPeer:
    return HttpPeer(server.urls[1])


def nodes(server: serving.ServerProcess) -> dict[str, Any]:
    """The servers that this one knows of, by name; a restarted one is the newest of its name."""
    return {node["name"]: node for node in http(server).get("/cluster")}


def is_linked(server: serving.ServerProcess) -> bool:
    """Whether the other servers answer this one, and it has measured how quickly."""
    others = [node for node in nodes(server).values() if not node["answers"]]
    return all(node["jobs"] is not None and node["round_trip"] for node in others)


def states(server: serving.ServerProcess) -> list[str]:
    return [node["state"] for node in nodes(server).values()]


def geartrain(folder: Path, server: serving.ServerProcess, *words: str) -> str:
    done = serving.run_command(folder, "cluster", "--server", server.url, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def submitted(server: serving.ServerProcess, count: int) -> set[bytes]:
    """Handles of background jobs."""
    with Peer(server.port) as client:
        return {client.submit(FUNCTION, b"", b"%d" % number, kind=Kind.SUBMIT_JOB_BG) for number in range(count)}


def run(server: serving.ServerProcess, count: int) -> set[bytes]:
    """Run so many jobs, as soon as the server has them; their handles."""
    wait_for(lambda: http(server).get("/overview?local=true")["queued"] >= count, f"{count} jobs are queued")
    handles = set()
    with worker(server.port, FUNCTION) as taker:
        for _ in range(count):
            handle = taker.grab().handle
            taker.send(Kind.WORK_COMPLETE, handle, b"")
            handles.add(handle)
        taker.silence()
    return handles


def test_both_servers_list_both(pair: Pair) -> None:
    for server, own, other in ((pair[0], "one", "two"), (pair[1], "two", "one")):
        wait_for(lambda server=server: states(server) == ["serving", "serving"], "both serve")  # type: ignore[misc]
        wait_for(lambda server=server: is_linked(server), "they have a link")  # type: ignore[misc]
        found = nodes(server)
        assert (found[own]["answers"], found[other]["answers"]) == (True, False)
        for name in (own, other):
            assert 0 < found[name]["lease_left"] <= 60
            assert (found[name]["lent"], found[name]["borrowed"], found[name]["workers"]) == (0, 0, 0)
        assert found[own]["round_trip"] is None
        assert found[other]["round_trip"] > 0
        (alone,) = [node for node in http(server).get("/cluster?local=true") if node["name"] == other]
        assert (alone["lease_left"], alone["jobs"]) == (None, None)
        assert sum(node["leader"] for node in found.values()) == 1
        assert found["one"]["address"] == pair[0].urls[-1]
        assert found["one"]["node"] < found["two"]["node"]
        assert all(node["commit_age"] >= 0 for node in found.values())


def test_jobs_at_home_are_counted(pair: Pair) -> None:
    submitted(pair[1], 3)
    assert nodes(pair[1])["two"]["jobs"] == 3


def test_the_command_lists_them(tmp_path: Path, pair: Pair) -> None:
    wait_for(lambda: len(nodes(pair[0])) == 2, "it knows both")
    head, first, second = geartrain(tmp_path, pair[0]).splitlines()
    assert head.split()[:3] == ["SERVER", "NODE", "ADDRESS"]
    assert first.startswith("one *")
    assert "serving, leader" in first
    assert second.startswith("two ")
    names = [json.loads(line)["name"] for line in geartrain(tmp_path, pair[0], "--json").splitlines()]
    assert names == ["one", "two"]


def test_a_drained_server_ends_its_running_job_and_leaves_the_rest(tmp_path: Path, own_pair: Pair) -> None:
    one, two = own_pair
    handles = submitted(one, 3)
    with worker(one.port, FUNCTION) as busy:
        running = busy.grab().handle
        assert "asked to stop" in geartrain(tmp_path, two, "drain", "one")
        assert one.says("draining")
        wait_for(lambda: nodes(two)["one"]["draining"], "the other one knows")
        busy.send(Kind.GRAB_JOB).expect(Kind.NO_JOB)  # they are for others
        busy.send(Kind.WORK_COMPLETE, running, b"")
        assert one.wait() == 0
    assert run(two, 2) == handles - {running}
    records = {job["handle"]: job for job in http(two).get("/jobs?state=done")["items"]}
    assert {records[handle.decode()]["attempts"] for handle in handles} == {1}


def test_a_server_drains_itself(tmp_path: Path, own_pair: Pair) -> None:
    geartrain(tmp_path, own_pair[0], "drain", "one")
    assert own_pair[0].wait() == 0
    wait_for(lambda: nodes(own_pair[1])["two"]["leader"], "the other one leads")


def test_a_fenced_server_begins_anew_and_others_have_its_jobs(tmp_path: Path, own_pair: Pair) -> None:
    one, two = own_pair
    wait_for(lambda: len(nodes(two)) == 2, "it knows both")
    before = nodes(two)["one"]["node"]
    handles = submitted(one, 3)
    with worker(one.port, FUNCTION) as busy:
        busy.grab()
        assert "is fenced" in geartrain(tmp_path, two, "fence", "one")
        assert run(two, 3) == handles
        one.wait_for_doors(2 * len(one.urls))  # those of its second start
    assert one.says("fenced")
    wait_for(lambda: nodes(two)["one"]["node"] > before, "it is back as another node")


def test_a_server_that_hangs_is_fenced_without_waiting_for_its_lease(tmp_path: Path, own_pair: Pair) -> None:
    one, two = own_pair
    wait_for(lambda: len(nodes(two)) == 2, "it knows both")
    handles = submitted(one, 5)
    one.signal(signal.SIGSTOP)
    try:
        geartrain(tmp_path, two, "fence", "one")
        assert run(two, 5) == handles
    finally:
        one.signal(signal.SIGCONT)
    one.wait_for_doors(2 * len(one.urls))


@pytest.mark.parametrize("verb", ["drain", "fence"])
def test_an_unknown_server(pair: Pair, verb: str) -> None:
    answer = http(pair[0]).call("POST", f"/cluster/three/{verb}")
    assert answer.status == 404
    assert "the servers are one" in answer.json["detail"]


def test_a_server_does_not_fence_itself(pair: Pair) -> None:
    answer = http(pair[0]).call("POST", "/cluster/one/fence")
    assert answer.status == 409
    assert "drain it" in answer.json["detail"]


def test_while_postgresql_is_gone() -> None:
    """What was seen last is shown, and changes are refused with the reason."""
    with postgres.running() as own, member(own.url(), "one", "--store-patience", "1s") as server:
        wait_for(lambda: nodes(server), "it sees itself")
        own.stop()
        assert [*nodes(server)] == ["one"]
        answer = http(server).call("POST", "/cluster/two/drain")
        assert answer.status == 503
        assert "cannot read postgresql://" in answer.json["detail"]
        own.start()


@pytest.mark.parametrize("words", [[], ["drain", "x"], ["fence", "x"]])
def test_a_server_without_a_shared_store(tmp_path: Path, words: list[str]) -> None:
    with serving.serve("--store", "memory", "--listen", "gearman://127.0.0.1:0") as server:
        done = serving.run_command(tmp_path, "cluster", *words, "--server", server.url)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "not part of a cluster" in done.stderr
