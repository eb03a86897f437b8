"""A failed job is in the store exactly once, with its payload, whenever the server is killed."""

from pathlib import Path

import pytest

from tests.crash import store_file
from tests.crash.conftest import Start
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import until
from tests.support.serving import ServerProcess

HTTP = ("--listen", "http://127.0.0.1:0")
DATA = bytes(range(256)) * 40
PLACES = "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM records), (SELECT count(*) FROM failed_jobs)"


def fail(server: ServerProcess, path: Path) -> str:
    """Have a worker fail a job, and wait until that is on disk."""
    with Peer(server.port) as client, worker(server.port, b"f") as taker:
        handle = client.submit(b"f", b"key", DATA, kind=Kind.SUBMIT_JOB_BG)
        taker.grab()
        taker.send(Kind.WORK_EXCEPTION, handle, b"bad input")
        until(lambda: store_file.query(path, PLACES) == [(0, 1, 1)], "the failure is committed")
    return handle.decode()


def finish(server: ServerProcess, handle: str) -> None:
    """Have a worker complete the job, which must be the only one."""
    with worker(server.port, b"f") as taker:
        job = taker.grab(Kind.GRAB_JOB_UNIQ)
        assert (job.handle.decode(), job.unique, job.data) == (handle, b"key", DATA)
        taker.send(Kind.WORK_COMPLETE, job.handle, b"out")
        assert taker.take() is None


def test_killed_between_failure_and_retry(start: Start, path: Path) -> None:
    with start(*HTTP) as server:
        handle = fail(server, path)
        server.kill()
    with start(*HTTP) as server:
        http = HttpPeer(server.urls[1])
        job = http.get(f"/jobs/{handle}")
        assert (job["state"], job["payload_size"], job["reason"]) == ("failed", len(DATA), "bad input")
        assert http.call("GET", f"/jobs/{handle}/payload").data == DATA
        assert http.call("POST", f"/jobs/{handle}/retry").status == 200
        finish(server, handle)
        until(lambda: store_file.query(path, PLACES) == [(0, 1, 0)], "only the record of the done job is left")


@pytest.mark.parametrize("many", [False, True])
def test_killed_after_an_acknowledged_retry(start: Start, path: Path, many: bool) -> None:
    with start(*HTTP) as server:
        handle = fail(server, path)
        http = HttpPeer(server.urls[1])
        if many:
            report = http.post("/jobs/bulk", {"action": "retry", "filter": {"state": "failed"}})
            assert report["done"] == 1
        else:
            assert http.call("POST", f"/jobs/{handle}/retry").status == 200
        server.kill()
    assert store_file.query(path, PLACES) == [(1, 0, 0)]
    with start(*HTTP) as server:
        job = HttpPeer(server.urls[1]).get(f"/jobs/{handle}")
        assert (job["state"], [trial["why"] for trial in job["trials"]]) == ("queued", ["bad input"])
        finish(server, handle)


def test_killed_while_the_retried_job_runs(start: Start, path: Path) -> None:
    with start(*HTTP) as server:
        handle = fail(server, path)
        HttpPeer(server.urls[1]).call("POST", f"/jobs/{handle}/retry")
        with worker(server.port, b"f") as taker:
            taker.grab()
            server.kill()
    with start() as server:
        finish(server, handle)


def test_killed_after_an_acknowledged_deletion(start: Start, path: Path) -> None:
    with start(*HTTP) as server:
        handle = fail(server, path)
        assert HttpPeer(server.urls[1]).call("DELETE", f"/jobs/{handle}").status == 204
        server.kill()
    assert store_file.query(path, PLACES) == [(0, 0, 0)]


def test_a_job_that_dies_of_its_failure_survives(start: Start, path: Path) -> None:
    flags = (*HTTP, "--failures", "dead")
    with start(*flags) as server:
        with Peer(server.port) as client, worker(server.port, b"f") as taker:
            handle = client.submit(b"f", b"key", DATA, kind=Kind.SUBMIT_JOB_BG).decode()
            taker.grab()
            taker.send(Kind.WORK_FAIL, handle.encode())
            until(lambda: store_file.query(path, "SELECT state FROM jobs") == [(6,)], "the death is committed")
        server.kill()
    with start(*flags) as server:
        assert HttpPeer(server.urls[1]).call("POST", f"/jobs/{handle}/retry").status == 200
        finish(server, handle)
