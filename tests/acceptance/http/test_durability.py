"""Changes that HTTP acknowledged are durable."""

import os
import time
from pathlib import Path

import pytest

from tests.acceptance.http.conftest import HTTP
from tests.support import serving
from tests.support.http_peer import Peer

FAULTY_DISK = Path(__file__).parents[2] / "crash" / "faulty_disk"


def test_acknowledged_jobs_reports_and_changes_survive_a_kill(tmp_path: Path) -> None:
    store = ("--store", f"sqlite://{tmp_path}/jobs.db", "--listen", HTTP)
    with serving.serve(*store) as server:
        peer = Peer(server.url)
        jobs = [peer.submit("print", f"page {number}", priority="low") for number in range(20)]
        later = peer.submit("print", delay=3600)
        worker = peer.worker("print")
        done = worker.claim()
        worker.complete(done["handle"], b"printed")
        peer.post("/functions/print/pause")
        peer.call("PUT", "/functions/print/limits", {"low": 100})
        peer.call("PUT", "/schedules/daily", {"expression": "0 6 * * *", "function": "print"})
        server.kill()
    with serving.serve(*store) as server:
        peer = Peer(server.url)
        left = peer.get("/jobs?state=queued&function=print")["items"]
        assert [job["handle"] for job in left] == [job["handle"] for job in jobs[:0:-1]]
        assert {job["priority"] for job in left} == {"low"}
        assert peer.get(f"/jobs/{later['handle']}")["run_at"] == later["run_at"]
        assert peer.get(f"/jobs/{done['handle']}")["result"] == "printed"
        function = peer.get("/functions/print")
        assert (function["paused"], function["limits"]) == (True, [0, 0, 100])
        assert [schedule["name"] for schedule in peer.get("/schedules")] == ["daily"]


def test_nothing_is_acknowledged_while_the_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = tmp_path / "switch"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAULTY_DISK), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("FAULTY_DISK", f"switch {switch}")
    with serving.serve("--store", f"sqlite://{tmp_path}/jobs.db", "--listen", HTTP) as server:
        peer = Peer(server.url)
        kept = peer.submit("f", "kept")
        switch.touch()
        for order in ({"function": "f"}, {"function": "f", "wait": 60}):
            answer = peer.call("POST", "/jobs", order)
            assert (answer.status, answer.json["kind"]) == (503, "unavailable")
        ready = peer.ask("GET", "/readyz")
        assert (ready.status, ready.json["kind"]) == (503, "unavailable")
        assert peer.ask("GET", "/healthz").status == 200
        assert [job["handle"] for job in peer.get("/jobs?state=queued")["items"]] == [kept["handle"]]
        switch.unlink()
        deadline = time.monotonic() + 15
        while peer.call("POST", "/jobs", {"function": "f"}).status != 201:
            assert time.monotonic() < deadline, "it never recovered"
        assert peer.ask("GET", "/readyz").status == 200


def test_a_stop_answers_requests_that_wait(tmp_path: Path) -> None:
    """Long polls and streams do not hold up a stop, and who waits is told."""
    with serving.serve("--store", "memory", "--listen", HTTP) as server:
        peer = Peer(server.url)
        worker = peer.worker("f")
        claim = peer.send("POST", f"/api/v1{worker.path}/claim?wait=60")
        with peer.stream("/events") as events:
            events.next("overview")
            while not peer.get("/workers")["items"][0]["idle"]:
                pass
            server.stop()
            list(events)  # it ends
        assert claim.getresponse().status == 204
        claim.close()
