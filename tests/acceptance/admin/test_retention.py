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
