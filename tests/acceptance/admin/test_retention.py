"""Records of failed jobs are there when many more jobs have succeeded since."""

from datetime import timedelta
from pathlib import Path

import pytest

import geartrain
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


def test_keep_for_of_every_way_to_submit(tmp_path: Path) -> None:
    listens = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0")
    with serving.serve("--store", f"sqlite://{tmp_path}/jobs.db", *listens) as server:
        http = HttpPeer(server.urls[1])
        for url in server.urls:
            with geartrain.Client(url) as client:
                client.submit("f", background=True, keep_for=timedelta(hours=1))
                with pytest.raises(ValueError, match="add background=True"):
                    client.submit("f", keep_for=60)
                with pytest.raises(ValueError, match="at most"):
                    client.submit("f", background=True, keep_for=1e9)
            done = serving.run_command(tmp_path, "submit", "f", "--keep-for", "1h", "--server", url)
            assert (done.returncode, done.stderr) == (0, "")
            with geartrain.App("shop", url) as app:

                @app.task(name="f", keep_for=60)
                def quote() -> int:
                    return 100

                quote.with_options(keep_for=3600).submit_sync()
        worker = http.worker("f")
        while (job := worker.claim()) is not None:
            worker.complete(job["handle"], b"r")
        jobs = http.get("/jobs")["items"]
        assert [job["keep_until"] - job["finished_at"] for job in jobs] == pytest.approx([3600] * 6)


def test_a_function_keeps_its_records_for_another_time(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/jobs.db"
    options = ("--store", store, "--keep-records", "0", "--listen", f"http://{serving.HOST}:0")
    with serving.serve(*options) as server:
        http = HttpPeer(server.urls[0])
        http.call("PATCH", "/functions/long/settings", {"keep_for": 3600})
        http.call("PATCH", "/functions/short/settings", {"keep_for": 0, "keep_failed_for": 0})
        worker = http.worker("long", "short", "other")
        handles = {name: http.submit(name)["handle"] for name in ("long", "short")}
        for _ in handles:
            worker.complete(worker.claim()["handle"], b"r")
        bad = http.submit("short")["handle"]
        worker.claim()
        worker.report(bad, "fail", {"reason": "bad input"})
        for _ in range(1000):  # after so many records the server prunes
            http.submit("other")
        for _ in range(1000):
            worker.complete(worker.claim()["handle"])
        for gone in (handles["short"], bad):
            until(lambda gone=gone: http.call("GET", f"/jobs/{gone}").status == 404, "it is pruned")  # type: ignore[misc]
        kept = http.get(f"/jobs/{handles['long']}")
        assert kept["keep_until"] == pytest.approx(kept["finished_at"] + 3600)
