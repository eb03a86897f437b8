"""Operators' verbs by HTTP: functions, lists of jobs, actions on one job and on many."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.support import serving
from tests.support.http_peer import Peer


def test_the_overview_counts(peer: Peer, function: str) -> None:
    before = peer.get("/overview")
    peer.submit(function)
    peer.submit(function, delay=100)
    after = peer.get("/overview")
    assert after["submitted"] == before["submitted"] + 2
    assert after["queued"] == before["queued"] + 1
    assert after["scheduled"] == before["scheduled"] + 1


def test_history_has_samples(peer: Peer) -> None:
    with peer.stream("/events") as stream:  # a second passes
        stream.next("overview")
        stream.next("overview")
    samples = peer.get("/history?seconds=60")
    assert samples
    assert set(samples[-1]) == {"at", "submitted", "completed", "failed", "queued", "running"}


def test_the_system(peer: Peer, server: serving.ServerProcess) -> None:
    system = peer.get("/system")
    assert system["pid"] == server.pid
    assert {door["protocol"] for door in system["doors"]} == {"gearman", "http"}
    assert peer.get("/connections") == system["doors"]


def test_functions_by_page(peer: Peer, function: str) -> None:
    names = [f"{function}-{number}" for number in range(5)]
    for name in names:
        peer.submit(name)
    first = peer.get(f"/functions?search={function}-&limit=3")
    second = peer.get(f"/functions?search={function}-&limit=3&after={first['after']}")
    assert [item["name"] for item in first["items"] + second["items"]] == names
    assert second["after"] == ""


def test_functions_by_depth(peer: Peer, function: str) -> None:
    for number in range(3):
        for _ in range(number + 1):
            peer.submit(f"{function}-{number}")
    found = peer.get(f"/functions?search={function}&sort=queued")["items"]
    assert [item["queued"] for item in found] == [3, 2, 1]


@pytest.mark.parametrize("name", ["with/slash", "with space", "ünïcode", "100%", "a?b#c", '<script>"', "%2F"])
def test_percent_encoded_names(peer: Peer, name: str) -> None:
    peer.submit(name)
    path = f"/functions/{quote(name, safe='')}"
    assert peer.get(path)["name"] == name
    assert peer.post(f"{path}/pause")["paused"] is True
    [job] = peer.get(f"/jobs?function={quote(name)}")["items"]
    assert job["function"] == name


def test_a_name_that_is_not_utf8(peer: Peer) -> None:
    job = peer.post("/jobs", {"function": {"base64": "//4="}})
    assert peer.get("/functions/%FF%FE")["name"] == {"base64": "//4="}
    [found] = peer.get("/jobs?function=%FF%FE")["items"]
    assert found["handle"] == job["handle"]


def test_pausing_and_resuming(peer: Peer, function: str) -> None:
    peer.submit(function)
    assert peer.post(f"/functions/{function}/pause")["paused"] is True
    worker = peer.worker(function)
    assert worker.claim() is None
    assert peer.post(f"/functions/{function}/resume")["paused"] is False
    assert worker.claim() is not None


def test_limits(peer: Peer, function: str) -> None:
    answer = peer.call("PUT", f"/functions/{function}/limits", {"high": 3, "normal": 2, "low": 1})
    assert answer.json["limits"] == [3, 2, 1]


def test_dropping_a_function(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    busy = peer.call("DELETE", f"/functions/{function}")
    assert (busy.status, busy.json["kind"]) == (409, "conflict")
    peer.post(f"/jobs/{job['handle']}/cancel")
    assert peer.call("DELETE", f"/functions/{function}").status == 204
    assert peer.call("GET", f"/functions/{function}").status == 404


def test_jobs_by_state_function_and_page(peer: Peer, function: str) -> None:
    handles = [peer.submit(function, f"p{number}")["handle"] for number in range(5)]
    peer.submit(function, "later", delay=100)
    first = peer.get(f"/jobs?function={function}&state=queued&limit=3")
    second = peer.get(f"/jobs?function={function}&state=queued&limit=3&after={first['after']}")
    assert [job["handle"] for job in first["items"] + second["items"]] == handles[::-1]
    [later] = peer.get(f"/jobs?function={function}&state=scheduled")["items"]
    assert later["payload"] == "later"


def test_jobs_by_text(peer: Peer, function: str) -> None:
    peer.submit(function, unique="needle-in-it")
    peer.submit(function, unique="hay")
    [found] = peer.get(f"/jobs?function={function}&search=needle")["items"]
    assert found["unique"] == "needle-in-it"


def test_jobs_that_have_ended(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    worker.complete(job["handle"], b"r")
    [found] = peer.get(f"/jobs?function={function}&state=done&door=http")["items"]
    assert (found["handle"], found["result"]) == (job["handle"], "r")
    assert peer.get(f"/jobs?function={function}&state=done&door=gearman")["items"] == []
    assert peer.get(f"/jobs?function={function}&until=1")["items"] == []


def dead(peer: Peer, function: str, payload: str = "") -> str:
    """The handle of a job that was given up."""
    handle: str = peer.submit(function, payload)["handle"]
    for _ in range(10):
        worker = peer.worker(function)
        assert worker.claim()["handle"] == handle
        worker.leave()
    assert peer.get(f"/jobs/{handle}")["state"] == "dead"
    return handle


def test_a_dead_job_is_retried(peer: Peer, function: str) -> None:
    handle = dead(peer, function)
    assert "gave up after" in peer.get(f"/jobs/{handle}")["reason"]
    assert peer.post(f"/jobs/{handle}/retry")["state"] == "queued"
    again = peer.call("POST", f"/jobs/{handle}/retry")
    assert (again.status, again.json["kind"]) == (409, "conflict")


def test_a_dead_job_is_deleted(peer: Peer, function: str) -> None:
    handle = dead(peer, function)
    assert peer.call("DELETE", f"/jobs/{handle}").status == 204
    assert peer.get(f"/jobs?function={function}&state=dead")["items"] == []


def test_events_of_a_dead_job(peer: Peer, function: str) -> None:
    with peer.stream(f"/jobs/{dead(peer, function)}/events") as stream:
        [last] = list(stream)
    assert (last.name, last.data["state"]) == ("failed", "dead")


@pytest.mark.parametrize("verb", ["cancel", "retry", "run"])
def test_verbs_on_an_unknown_job(peer: Peer, verb: str) -> None:
    answer = peer.call("POST", f"/jobs/H:nowhere:1/{verb}")
    assert (answer.status, answer.json["kind"]) == (404, "not-found")


def test_an_unknown_job(peer: Peer) -> None:
    for path in ("", "/payload", "/result"):
        assert peer.call("GET", f"/jobs/H:nowhere:1{path}").status == 404
    assert peer.call("DELETE", "/jobs/H:nowhere:1").status == 404


def test_the_result_of_a_job_that_has_not_ended(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    answer = peer.call("GET", f"/jobs/{job['handle']}/result")
    assert (answer.status, answer.json["kind"]) == (409, "conflict")


def test_bulk_cancel(peer: Peer, function: str) -> None:
    for number in range(3):
        peer.submit(function, unique=f"wanted-{number}")
    kept = peer.submit(function, unique="other")
    report = peer.post("/jobs/bulk", {"action": "cancel", "filter": {"function": function, "search": "wanted-"}})
    assert report == {"done": 3, "refused": 0, "more": False}
    [left] = peer.get(f"/jobs?function={function}&state=queued")["items"]
    assert left["handle"] == kept["handle"]


def test_bulk_retry(peer: Peer, function: str) -> None:
    dead(peer, function, "one")
    order: dict[str, Any] = {"action": "retry", "filter": {"function": function, "state": "dead"}}
    assert peer.post("/jobs/bulk", order)["done"] == 1
    assert peer.get(f"/functions/{function}")["queued"] == 1


@pytest.mark.parametrize("order", [{}, {"action": "explode", "filter": {}}, {"action": "cancel", "filter": {"x": 1}}])
def test_an_invalid_bulk_action(peer: Peer, order: Any) -> None:
    assert peer.call("POST", "/jobs/bulk", order).status == 400
