"""Submitting jobs by HTTP."""

import base64
import threading
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.http_peer import Peer


def test_a_background_job_is_accepted_and_shown(peer: Peer, function: str) -> None:
    answer = peer.call("POST", "/jobs", {"function": function, "payload": "hello", "unique": "u", "priority": "high"})
    assert answer.status == 201
    job = answer.json
    assert (job["function"], job["payload"], job["unique"], job["priority"]) == (function, "hello", "u", "high")
    assert (job["state"], job["background"], job["door"]) == ("queued", True, "http")
    path = f"/api/v1/jobs/{quote(job['handle'], safe='')}"
    assert answer.headers["location"] == path
    assert peer.ask("GET", path).json["handle"] == job["handle"]


def test_bytes_that_are_not_utf8(peer: Peer, function: str) -> None:
    data = bytes(range(256))
    encoded = base64.b64encode(data).decode()
    for order in ({"payload_base64": encoded}, {"payload": {"base64": encoded}}):
        job = peer.post("/jobs", {"function": function, **order})
        assert job["payload"] == {"base64": encoded}
        raw = peer.call("GET", f"/jobs/{job['handle']}/payload")
        assert raw.data == data
        assert raw.headers["content-type"] == "application/octet-stream"
        assert raw.headers["content-disposition"].startswith("attachment; ")
        assert raw.headers["x-content-type-options"] == "nosniff"


def test_a_unique_key_joins_the_existing_job(peer: Peer, function: str) -> None:
    first = peer.submit(function, "one", unique="same")
    second = peer.submit(function, "two", unique="same")
    assert second["handle"] == first["handle"]
    assert second["payload"] == "one"


def test_a_delayed_job(peer: Peer, function: str) -> None:
    now = peer.get("/overview")["now"]
    later = peer.submit(function, delay=3600)
    assert later["state"] == "scheduled"
    assert later["run_at"] >= now + 3600
    assert peer.submit(function, run_at=now + 7200)["run_at"] == now + 7200
    assert peer.submit(function, run_at=now - 7200)["state"] == "queued"
    hastened = peer.post(f"/jobs/{later['handle']}/run")
    assert hastened["state"] == "queued"


def run_one(peer: Peer, function: str, what: str, value: Any = None, data: bytes | None = None) -> threading.Thread:
    """A worker that does one job and reports on it."""
    worker = peer.worker(function)

    def work() -> None:
        job = worker.claim(wait=15)
        answer = worker.report(job["handle"], what, value, data)
        assert answer.status == 204, answer

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("background", [True, False])
def test_waiting_for_a_result(peer: Peer, function: str, background: bool) -> None:
    thread = run_one(peer, function, "complete", data=b"the \xff result")
    answer = peer.call("POST", "/jobs", {"function": function, "wait": 15, "background": background})
    thread.join()
    assert answer.status == 200
    job = answer.json
    assert (job["state"], job["code"]) == ("done", 0)
    assert base64.b64decode(job["result"]["base64"]) == b"the \xff result"
    assert job["finished_at"] >= job["started_at"] >= job["submitted_at"]


def test_waiting_for_a_failure(peer: Peer, function: str) -> None:
    thread = run_one(peer, function, "fail", {"reason": "no paper"})
    job = peer.submit(function, wait=15)
    thread.join()
    assert (job["state"], job["reason"]) == ("failed", "no paper")


def test_waiting_for_an_exception(peer: Peer, function: str) -> None:
    thread = run_one(peer, function, "fail", {"data": "Traceback", "code": 7})
    job = peer.submit(function, wait=15, background=False)
    thread.join()
    assert (job["state"], job["code"], job["result"]) == ("failed", 7, "Traceback")


def test_a_client_that_waits_gets_a_large_result_whole(peer: Peer, function: str) -> None:
    result = b"x" * 300_000
    thread = run_one(peer, function, "complete", data=result)
    job = peer.submit(function, wait=15)
    thread.join()
    assert job["result"] == result.decode()
    assert job["result_size"] == len(result)


def test_a_background_job_continues_after_the_wait(peer: Peer, function: str) -> None:
    answer = peer.call("POST", "/jobs", {"function": function, "wait": 0.05})
    assert answer.status == 202
    assert answer.json["state"] == "queued"
    assert peer.get(f"/jobs/{answer.json['handle']}")["state"] == "queued"


def test_a_foreground_job_is_abandoned_after_the_wait(peer: Peer, function: str) -> None:
    answer = peer.call("POST", "/jobs", {"function": function, "wait": 0.05, "background": False})
    assert (answer.status, answer.json["kind"]) == (504, "not-over")
    assert peer.get(f"/functions/{function}")["queued"] == 0


def test_a_foreground_job_is_abandoned_when_its_client_disconnects(peer: Peer, function: str) -> None:
    body = b'{"function": "%b", "wait": 60, "background": false}' % function.encode()
    with peer.stream("/events?jobs=1&what=submitted,cancelled") as events:
        connection = peer.send("POST", "/api/v1/jobs", body, {"Content-Type": "application/json"})
        assert events.next("job")["what"] == "submitted"
        connection.close()
        event = events.next("job")
    assert (event["what"], event["function"]) == ("cancelled", function)


def test_a_full_queue_is_a_problem(peer: Peer, function: str) -> None:
    assert peer.call("PUT", f"/functions/{function}/limits", {"high": 1, "normal": 1, "low": 1}).status == 200
    peer.submit(function)
    answer = peer.call("POST", "/jobs", {"function": function})
    assert (answer.status, answer.json["kind"]) == (429, "queue-full")


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"function": ""},
        {"function": 1},
        {"function": "f", "priority": "urgent"},
        {"function": "f", "payload": "x", "payload_base64": "eA=="},
        {"function": "f", "payload_base64": "***"},
        {"function": "f", "run_at": 1, "delay": 1},
        {"function": "f", "delay": -1},
        {"function": "f", "wait": 1e9},
        {"function": "f", "background": False},
        {"function": "f", "colour": "red"},
        [],
        "f",
    ],
)
def test_an_invalid_submission(peer: Peer, order: Any) -> None:
    answer = peer.call("POST", "/jobs", order)
    assert (answer.status, answer.json["kind"]) == (400, "bad-request")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["detail"]
