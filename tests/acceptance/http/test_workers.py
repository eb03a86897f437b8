"""Workers by HTTP: leases, claims, reports."""

import concurrent.futures
import threading
import time

import pytest

from tests.support.http_peer import Peer


def test_a_worker_gets_jobs_by_priority_and_order(peer: Peer, function: str) -> None:
    for payload, priority in (("c", "low"), ("b", "normal"), ("a", "high")):
        peer.submit(function, payload, priority=priority)
    worker = peer.worker(function)
    jobs = [worker.claim() for _ in range(3)]
    assert [job["payload"] for job in jobs] == ["a", "b", "c"]
    assert [job["attempts"] for job in jobs] == [1, 1, 1]
    assert worker.claim() is None


def test_a_claim_waits_for_a_job(peer: Peer, function: str) -> None:
    worker = peer.worker(function)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        claim = pool.submit(worker.claim, 15)
        until_idle(peer, function)
        peer.submit(function, "now")
        assert claim.result()["payload"] == "now"


def test_several_claims_of_one_worker_get_a_job_each(peer: Peer, function: str) -> None:
    worker = peer.worker(function)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        claims = [pool.submit(worker.claim, 15) for _ in range(3)]
        until_idle(peer, function)
        for payload in "abc":
            peer.submit(function, payload)
        assert sorted(claim.result()["payload"] for claim in claims) == ["a", "b", "c"]


def test_a_claim_of_a_closed_connection_gets_no_job(peer: Peer, function: str) -> None:
    worker = peer.worker(function)
    connection = peer.send("POST", f"/api/v1{worker.path}/claim?wait=60")
    until_idle(peer, function)
    connection.close()
    until_idle(peer, function, idle=False)
    job = peer.submit(function)
    assert peer.get(f"/jobs/{job['handle']}")["state"] == "queued"


def test_reports_reach_the_client(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function, name="nina")
    worker.claim()
    assert worker.report(job["handle"], "progress", {"numerator": 1, "denominator": 4}).status == 204
    view = peer.get(f"/jobs/{job['handle']}")
    assert (view["state"], view["numerator"], view["denominator"]) == ("running", 1, 4)
    assert (view["worker"], view["worker_door"]) == ("nina", "http")
    worker.complete(job["handle"], b"done")
    view = peer.get(f"/jobs/{job['handle']}")
    assert (view["state"], view["result"], view["worker"]) == ("done", "done", "nina")
    assert peer.call("GET", f"/jobs/{job['handle']}/result").data == b"done"


def test_a_failed_job_is_retried(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    assert worker.report(job["handle"], "fail", {"reason": "busy", "retry": True}).status == 204
    assert peer.get(f"/jobs/{job['handle']}")["state"] == "scheduled"
    peer.post(f"/jobs/{job['handle']}/run")
    assert worker.claim()["attempts"] == 2


def test_a_job_is_rescheduled(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    assert worker.report(job["handle"], "reschedule", {"delay": 3600}).status == 204
    view = peer.get(f"/jobs/{job['handle']}")
    assert (view["state"], view["attempts"]) == ("scheduled", 0)
    assert worker.report(job["handle"], "reschedule", {"delay": 1}).status == 409


@pytest.mark.parametrize("wish", [{}, {"delay": 1, "run_at": 1}])
def test_rescheduling_needs_a_time(peer: Peer, function: str, wish: dict[str, float]) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    assert worker.report(job["handle"], "reschedule", wish).status == 400


def test_jobs_of_an_unregistered_worker_return_to_their_queues(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    worker.leave()
    assert peer.get(f"/jobs/{job['handle']}")["state"] == "queued"
    assert peer.get(f"/functions/{function}")["workers"] == 0
    assert peer.call("POST", f"{worker.path}/claim").status == 404


def test_a_late_report_after_the_lease_is_refused(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    silent, other = peer.worker(function, lease=1), peer.worker(function)
    assert silent.claim()["handle"] == job["handle"]
    assert other.claim(wait=15)["attempts"] == 2
    late = silent.report(job["handle"], "complete", data=b"late")
    assert (late.status, late.json["kind"]) == (404, "not-found")
    assert peer.get(f"/jobs/{job['handle']}")["state"] == "running"


def test_requests_renew_the_lease(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function, lease=3)
    assert worker.claim()["handle"] == job["handle"]
    for _ in range(8):
        threading.Event().wait(0.5)  # together more than the lease; each much less, for a machine that is busy
        assert peer.post(f"{worker.path}/renew") == {"id": worker.path.rpartition("/")[2], "lease": 3.0, "revoked": []}
    worker.complete(job["handle"])


def test_a_renewal_that_waits_is_answered_when_a_job_is_cancelled(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    assert worker.claim()["handle"] == job["handle"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        renewal = pool.submit(peer.post, f"{worker.path}/renew?wait=30")
        peer.post(f"/jobs/{job['handle']}/cancel")
        assert renewal.result()["revoked"] == [job["handle"]]
    assert peer.post(f"{worker.path}/renew")["revoked"] == []
    assert peer.get(f"/jobs/{job['handle']}")["state"] == "cancelled"


def test_a_job_that_times_out_goes_to_another_worker(peer: Peer, function: str) -> None:
    job = peer.submit(function, timeout=2)  # which is also the other worker's time for what follows
    slow, other = peer.worker(function), peer.worker(function)
    assert slow.claim()["deadline"] is not None
    assert other.claim(wait=15)["handle"] == job["handle"]
    late = slow.report(job["handle"], "complete", data=b"late")
    assert (late.status, late.json["kind"]) == (409, "conflict")
    other.complete(job["handle"], b"in time")
    assert peer.get(f"/jobs/{job['handle']}")["result"] == "in time"


def test_reports_on_jobs_of_other_workers_are_refused(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker, other = peer.worker(function), peer.worker(function)
    worker.claim()
    for what, value in (("progress", {"numerator": 1, "denominator": 2}), ("fail", {}), ("complete", None)):
        assert other.report(job["handle"], what, value).status == 409
    worker.complete(job["handle"])


def test_workers_are_listed(peer: Peer, function: str) -> None:
    peer.worker(function, name="greta")
    [shown] = peer.get(f"/workers?search={function}")["items"]
    assert (shown["name"], shown["door"], shown["functions"]) == ("greta", "http", [function])
    assert shown["peer"].startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("registration", "status"),
    [
        ({}, 400),
        ({"functions": []}, 400),
        ({"functions": [""]}, 400),
        ({"functions": "f"}, 400),
        ({"functions": ["f"], "lease": 0}, 400),
        ({"functions": ["geartrain.control"]}, 409),
    ],
)
def test_an_invalid_registration(peer: Peer, registration: object, status: int) -> None:
    assert peer.call("POST", "/workers", registration).status == status


def until_idle(peer: Peer, function: str, idle: bool = True) -> None:
    """Return when the function's worker waits for a job, or does not any more."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if all(worker["idle"] is idle for worker in peer.get(f"/workers?search={function}")["items"]):
            return
    raise AssertionError("the worker never got there")
