"""Records of failed jobs are there when many more jobs have succeeded since."""

from pathlib import Path

import pytest

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import until

GOOD = 25_000  # many times the limit, and more than the memory store adds between two prunes
KEPT = 1000


@pytest.mark.parametrize("store", ["sqlite", "memory"])
def test_one_failure_outlives_many_successes(tmp_path: Path, store: str) -> None:
    url = "memory" if store == "memory" else f"sqlite://{tmp_path}/jobs.db"
    listens = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0")
    with serving.serve("--store", url, "--keep-records", str(KEPT), "--keep-failed", "10", *listens) as server:
        http = HttpPeer(server.urls[1])
        with Peer(server.port) as client, worker(server.port, b"f") as taker:
            failed = client.submit(b"f", b"", b"bad", kind=Kind.SUBMIT_JOB_BG)
            taker.grab()
            taker.send(Kind.WORK_FAIL, failed)
            first = b""
            for _ in range(GOOD // 500):
                for _ in range(500):
                    client.send(Kind.SUBMIT_JOB_BG, b"f", b"", b"")
                handles = [client.body(Kind.JOB_CREATED) for _ in range(500)]
                first = first or handles[0]
                for _ in handles:
                    taker.send(Kind.GRAB_JOB)
                for _ in handles:
                    taker.body(Kind.JOB_ASSIGN)
                for handle in handles:
                    taker.send(Kind.WORK_COMPLETE, handle, b"")
            until(lambda: http.call("GET", f"/jobs/{first.decode()}").status == 404, "the first success is pruned")
            assert http.get(f"/jobs/{failed.decode()}")["state"] == "failed"
            assert [job["handle"] for job in http.get("/jobs?state=failed")["items"]] == [failed.decode()]


def test_record_is_protected_for_the_time_that_its_submitter_asked_for(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/jobs.db"
    options = ("--store", store, "--keep-records", "0", "--listen", f"http://{serving.HOST}:0")
    with serving.serve(*options) as server:
        http = HttpPeer(server.urls[0])
        handles = [http.submit("f", keep_for=seconds)["handle"] for seconds in (3600, 0)]
        shared = http.submit("f", unique="key")["handle"]
        assert http.submit("f", unique="key", keep_for=60)["handle"] == shared
        assert http.call("POST", "/jobs", {"function": "f", "keep_for": 1e9}).status == 400
    with serving.serve(*options) as server:
        http = HttpPeer(server.urls[0])
        worker = http.worker("f")
        for _ in range(3):
            worker.complete(worker.claim()["handle"], b"r")
        for _ in range(1000):  # after so many records the server prunes
            http.submit("g")
        other = http.worker("g")
        for _ in range(1000):
            other.complete(other.claim()["handle"])
        until(lambda: http.call("GET", f"/jobs/{handles[1]}").status == 404, "the record without a time is pruned")
        for handle, seconds in ((handles[0], 3600), (shared, 60)):
            job = http.get(f"/jobs/{handle}")
            assert job["keep_until"] == pytest.approx(job["finished_at"] + seconds)
            assert http.call("GET", f"/jobs/{handle}/result").data == b"r"
