"""Event streams of one job and of the server."""

import contextlib
import time

import geartrain
from tests.acceptance.http.conftest import HTTP
from tests.support import serving
from tests.support.http_peer import Event, Peer, Stream


def test_events_of_a_job_until_its_end(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    handle = job["handle"]
    with peer.stream(f"/jobs/{handle}/events") as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        worker.report(handle, "progress", {"numerator": 1, "denominator": 2})
        worker.report(handle, "data", data=b"part \xff")
        worker.report(handle, "warning", data=b"careful")
        worker.complete(handle, b"whole")
        *news, last = list(stream)  # the stream ends by itself
    assert news == [
        Event("progress", {"numerator": 1, "denominator": 2}),
        Event("data", {"data": {"base64": "cGFydCD/"}}),
        Event("warning", {"data": "careful"}),
    ]
    assert (last.name, last.data["state"], last.data["result"]) == ("done", "done", "whole")


def test_the_first_event_is_the_current_progress(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    worker.report(job["handle"], "progress", {"numerator": 3, "denominator": 4})
    with peer.stream(f"/jobs/{job['handle']}/events") as stream:
        assert stream.next("progress") == {"numerator": 3, "denominator": 4}


def test_events_of_a_job_that_fails(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    with peer.stream(f"/jobs/{job['handle']}/events") as stream:
        peer.post(f"/jobs/{job['handle']}/cancel")
        [last] = list(stream)
    assert (last.name, last.data["state"]) == ("failed", "cancelled")


def test_events_of_a_job_that_has_ended(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    worker = peer.worker(function)
    worker.claim()
    worker.complete(job["handle"], b"long ago")
    with peer.stream(f"/jobs/{job['handle']}/events") as stream:
        [last] = list(stream)
    assert (last.name, last.data["result"]) == ("done", "long ago")


def test_events_of_an_unknown_job(peer: Peer) -> None:
    assert peer.call("GET", "/jobs/H:nowhere:1/events").status == 404


def test_a_disconnect_of_a_stream_does_not_end_the_job(peer: Peer, function: str) -> None:
    job = peer.submit(function)
    with peer.stream(f"/jobs/{job['handle']}/events"):
        pass
    assert peer.get(f"/jobs/{job['handle']}")["state"] == "queued"


def test_the_overview_is_sent_at_once_and_repeatedly(peer: Peer) -> None:
    with peer.stream("/events") as stream:
        first, second = stream.next("overview"), stream.next("overview")
    assert second["now"] > first["now"]


def test_job_events_are_sent_only_if_requested(peer: Peer, function: str) -> None:
    with peer.stream("/events") as plain, peer.stream("/events?jobs=1") as jobs:
        job = peer.submit(function)
        assert jobs.next("job")["handle"] == job["handle"]
        heard = [event.name for event, _ in zip(plain, range(2), strict=False)]
    assert heard == ["overview", "overview"]


def test_job_events_by_function_and_kind(peer: Peer, function: str) -> None:
    with peer.stream(f"/events?jobs=1&function={function}&what=done,failed") as stream:
        peer.submit("another-function")
        peer.submit(function)
        worker = peer.worker(function)
        job = worker.claim()
        worker.complete(job["handle"])
        event = stream.next("job")
    assert (event["what"], event["function"], event["handle"]) == ("done", function, job["handle"])


def test_job_events_above_the_limit_are_counted(server: serving.ServerProcess, peer: Peer, function: str) -> None:
    submitted = 1000
    with peer.stream(f"/events?jobs=1&function={function}&what=submitted") as stream:
        stream.next("overview")
        with geartrain.Client(server.url) as client:
            client.submit_many([client.order(function, background=True) for _ in range(submitted)])
        seen = missed = 0
        for event in stream:
            seen += event.name == "job"
            missed += event.data["missed"] if event.name == "missed" else 0
            if seen + missed == submitted:
                break
    assert missed


def test_an_unknown_event_name_is_refused(peer: Peer) -> None:
    answer = peer.call("GET", "/events?jobs=1&what=done,nonsense")
    assert (answer.status, answer.json["kind"]) == (400, "bad-request")
    assert "'nonsense'" in answer.json["detail"]


def test_streams_of_one_client_are_bounded() -> None:
    flags = ("--http-listeners-per-client", "2", "--http-trusted-proxies", "127.0.0.3")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving.serve("--store", "memory", "--listen", HTTP, *flags))
        peer, other, proxy = (Peer(server.url, source=f"127.0.0.{n}") for n in (1, 2, 3))
        for client in (peer, peer, other, other):
            stack.enter_context(client.stream("/events")).next("overview")
        answer = peer.call("GET", "/events")
        assert (answer.status, answer.json["kind"]) == (503, "unavailable")
        assert "2 event streams of 127.0.0.1 are open" in answer.json["detail"]
        assert other.call("GET", "/events", x_forwarded_for="192.0.2.1").status == 503
        assert proxy.call("GET", "/events", x_forwarded_for="127.0.0.2").status == 503
        proxied = Stream(proxy.send("GET", "/api/v1/events", headers={"X-Forwarded-For": "192.0.2.1"}))
        assert stack.enter_context(proxied).next("overview")


def test_closed_streams_are_removed(peer: Peer) -> None:
    before = peer.get("/overview")["connections"]
    for _ in range(3):
        with peer.stream("/events?jobs=1") as stream:
            stream.next("overview")
    deadline = time.monotonic() + 15
    while peer.get("/overview")["connections"] > before:
        assert time.monotonic() < deadline, "the connections are still there"
