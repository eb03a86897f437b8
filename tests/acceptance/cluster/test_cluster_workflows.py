"""Workflows in a cluster: any server has workers for their members, shows them, and takes them over."""

from typing import Any

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.support import serving
from tests.support.http_peer import HttpWorker, Peer
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL


def http(server: serving.ServerProcess) -> Peer:
    return Peer(server.urls[1])


def diamond(function: str) -> dict[str, Any]:
    names = ("top", "left", "right", "bottom")
    parents: tuple[list[int], ...] = ([], [0], [0], [1, 2])
    jobs = [{"function": function, "payload": name, "after": after} for name, after in zip(names, parents, strict=True)]
    return {"name": "diamond", "jobs": jobs}


def run(worker: HttpWorker) -> str:
    job = worker.claim(wait=60)
    worker.complete(job["handle"])
    return str(job["payload"])


def test_a_worker_of_another_server_runs_the_members(own_pair: Pair) -> None:
    one, two = map(http, own_pair)
    handle = one.post("/workflows", diamond("elsewhere"))["handle"]
    worker = two.worker("elsewhere")
    assert [run(worker) for _ in range(4)] == ["top", "left", "right", "bottom"]
    for peer in (one, two):
        wait_for(lambda: peer.get(f"/workflows/{handle}")["state"] == "done", "it is done")  # noqa: B023
        assert peer.get(f"/workflows/{handle}")["states"] == {"done": 4}


def test_retry_at_another_server(own_pair: Pair) -> None:
    one, two = map(http, own_pair)
    handle = one.post("/workflows", diamond("retried"))["handle"]
    worker = one.worker("retried")
    worker.report(worker.claim()["handle"], "fail")
    assert two.get(f"/workflows/{handle}")["states"] == {"failed": 1, "cancelled": 3}
    two.post(f"/jobs/{handle}/retry")
    assert [run(worker) for _ in range(4)] == ["top", "left", "right", "bottom"]
    assert two.get(f"/workflows/{handle}")["state"] == "done"


def test_it_goes_on_when_its_home_dies(schema_url: str) -> None:
    with member(schema_url, "two", "--lease", "2s") as two:
        with member(schema_url, "one", "--lease", "2s") as one:
            peer = http(one)
            handle = peer.post("/workflows", diamond("f"))["handle"]
            worker = peer.worker("f")
            assert run(worker) == "top"
            worker.report(worker.claim()["handle"], "fail")
            peer.call("POST", "/jobs", {"function": "f", "payload": "later", "delay": 1000})  # after that end
            one.kill()
        peer = http(two)
        wait_for(lambda: peer.call("GET", "/functions/f?local=true").status == 200, "it has the function")
        worker = peer.worker("f")
        assert run(worker) == "right"
        wait_for(lambda: peer.get(f"/workflows/{handle}")["state"] == "failed", "the workflow has ended")
        shown = peer.get(f"/workflows/{handle}")
        assert shown["states"] == {"done": 2, "failed": 1, "cancelled": 1}
        peer.post(f"/jobs/{handle}/retry")
        assert [run(worker), run(worker)] == ["left", "bottom"]
        wait_for(lambda: peer.get(f"/workflows/{handle}")["state"] == "done", "the workflow is done")
