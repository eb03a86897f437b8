"""A time to live by HTTP."""

import time

from tests.support.http_peer import Peer
from tests.support.peer import until


def test_job_that_nobody_takes_expires(peer: Peer) -> None:
    handle = peer.submit("lonely", expires=0.2)["handle"]
    until(lambda: _ended(peer, handle), "the job expires")
    job = peer.get(f"/jobs/{handle}")
    assert (job["state"], job["code"], job["started_at"]) == ("expired", 1, None)
    assert job["reason"].startswith("expired: no worker was free")
    assert handle in [item["handle"] for item in peer.get("/jobs?state=expired&function=lonely")["items"]]
    assert peer.worker("lonely").claim() is None


def test_job_that_a_worker_took_does_not_expire(peer: Peer) -> None:
    taken = peer.submit("busy", expires_at=time.time() + 0.3)
    assert taken["expires_at"] > taken["submitted_at"]
    worker = peer.worker("busy")
    assert worker.claim()["handle"] == taken["handle"]
    other = peer.submit("lonely", expires=0.4)["handle"]
    until(lambda: _ended(peer, other), "the other one expires, which has a later time")
    worker.complete(taken["handle"])
    assert peer.get(f"/jobs/{taken['handle']}")["state"] == "done"


def test_client_that_waits_is_told(peer: Peer) -> None:
    job = peer.post("/jobs", {"function": "lonely", "background": False, "wait": 30, "expires": 0.1})
    assert job["state"] == "expired"


def test_events(peer: Peer) -> None:
    with peer.stream("/events?jobs=1&function=lonely&what=expired") as stream:
        handle = peer.submit("lonely", expires=0.1)["handle"]
        event = stream.next("job")
        assert (event["what"], event["handle"]) == ("expired", handle)


def test_invalid_times(peer: Peer) -> None:
    for wrong in (
        {"expires": 0},
        {"expires": -1},
        {"expires": 1, "expires_at": 5},
        {"expires": "soon"},
        {"expires": 5, "delay": 9},
    ):
        assert peer.call("POST", "/jobs", {"function": "f", **wrong}).status == 400, wrong


def _ended(peer: Peer, handle: str) -> bool:
    return peer.get(f"/jobs/{handle}")["finished_at"] is not None
