"""A failed background job is kept whole: it can be read, retried and deleted, whatever failed it."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import until

LISTEN = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0")


def report(taker: Peer, handle: bytes) -> None:
    taker.send(Kind.WORK_FAIL, handle)


def throw(taker: Peer, handle: bytes) -> None:
    taker.send(Kind.WORK_EXCEPTION, handle, b"ValueError: bad input")


def run_out_of_time(taker: Peer, handle: bytes) -> None:
    """The worker registered with a timeout, and says nothing."""


Fail = Callable[[Peer, bytes], None]
WAYS = pytest.mark.parametrize("fail", [report, throw, run_out_of_time])
STORES = pytest.mark.parametrize("store", ["sqlite", "memory"])


class Served:
    """A server with a client of each protocol that these tests use."""

    def __init__(self, server: serving.ServerProcess) -> None:
        self.server = server
        self.http = HttpPeer(server.urls[1])

    def fail(self, fail: Fail = report, function: bytes = b"f", unique: bytes = b"", payload: bytes = b"in") -> str:
        """Submit a background job, and have a worker fail it; return its handle."""
        with Peer(self.server.port) as client, Peer(self.server.port) as taker:
            handle = client.submit(function, unique, payload, kind=Kind.SUBMIT_JOB_BG)
            taker.send(Kind.CAN_DO_TIMEOUT, function, b"50" if fail is run_out_of_time else b"60000")
            taker.grab()
            fail(taker, handle)
            path = f"/jobs/{handle.decode()}"
            until(lambda: self.http.get(path)["state"] in ("failed", "dead"), "the job has failed")
        return handle.decode()

    def run(self, function: bytes = b"f") -> tuple[str, bytes]:
        """Have a worker complete the next job; return its handle and payload."""
        with worker(self.server.port, function) as taker:
            job = taker.grab()
            taker.send(Kind.WORK_COMPLETE, job.handle, b"out").silence()
            return job.handle.decode(), job.data

    def job(self, handle: str) -> Any:
        return self.http.get(f"/jobs/{handle}")

    def failed(self) -> list[str]:
        return [job["handle"] for job in self.http.get("/jobs?state=failed")["items"]]


@contextlib.contextmanager
def serve(tmp_path: Path, store: str, *flags: str) -> Iterator[Served]:
    url = "memory" if store == "memory" else f"sqlite://{tmp_path}/jobs.db"
    with serving.serve("--store", url, *LISTEN, *flags) as server:
        yield Served(server)


@STORES
@WAYS
def test_kept_whole_and_retried(tmp_path: Path, store: str, fail: Fail) -> None:
    with serve(tmp_path, store) as served:
        handle = served.fail(fail, unique=b"key")
        job = served.job(handle)
        assert (job["state"], job["payload"], job["unique"], job["priority"]) == ("failed", "in", "key", "normal")
        assert served.http.call("GET", f"/jobs/{handle}/payload").data == b"in"
        retried = served.http.call("POST", f"/jobs/{handle}/retry").json
        assert (retried["state"], retried["payload"]) == ("queued", "in")
        (trial,) = retried["trials"]
        assert (trial["why"], trial["door"]) == (job["reason"], "gearman")
        assert trial["ended_at"] == job["finished_at"]
        assert served.failed() == []
        assert served.run() == (handle, b"in")
        done = served.job(handle)
        assert (done["state"], len(done["trials"])) == ("done", 1)
        assert served.http.call("POST", f"/jobs/{handle}/retry").status == 409


@STORES
def test_failed_again(tmp_path: Path, store: str) -> None:
    with serve(tmp_path, store) as served:
        handle = served.fail()
        for attempts in range(1, 4):
            assert served.http.call("POST", f"/jobs/{handle}/retry").status == 200
            with worker(served.server.port, b"f") as taker:
                throw(taker, taker.grab().handle)
                until(lambda: served.job(handle)["state"] == "failed", "the job has failed again")
            assert len(served.job(handle)["trials"]) == attempts
            assert served.failed() == [handle]
        assert served.http.call("GET", f"/jobs/{handle}/payload").data == b"in"


@STORES
def test_deleted(tmp_path: Path, store: str) -> None:
    with serve(tmp_path, store) as served:
        handle, other = served.fail(), served.fail()
        assert served.http.call("DELETE", f"/jobs/{handle}").status == 204
        assert served.http.call("GET", f"/jobs/{handle}").status == 404
        assert served.http.call("DELETE", f"/jobs/{handle}").status == 404
        assert served.failed() == [other]


@STORES
def test_many_at_once(tmp_path: Path, store: str) -> None:
    with serve(tmp_path, store) as served:
        resized = [served.fail(function=b"resize", payload=b"cat %d" % number) for number in range(3)]
        mailed = [served.fail(function=b"mail") for _ in range(2)]
        found = served.http.get("/jobs?state=failed&search=cat%201")["items"]
        assert [job["handle"] for job in found] == [resized[1]]
        one = {"action": "retry", "filter": {"state": "failed", "search": "cat 1"}}
        assert served.http.call("POST", "/jobs/bulk", one).json == {"done": 1, "refused": 0, "more": False}
        rest = {"action": "retry", "filter": {"function": "resize"}}
        assert served.http.call("POST", "/jobs/bulk", rest).json == {"done": 2, "refused": 0, "more": False}
        assert sorted(served.run(b"resize") for _ in range(3)) == sorted(
            (handle, b"cat %d" % number) for number, handle in enumerate(resized)
        )
        assert served.failed() == mailed[::-1]
        everything = {"action": "delete", "filter": {"state": "failed"}}
        assert served.http.call("POST", "/jobs/bulk", everything).json["done"] == 2
        assert served.failed() == []


@STORES
def test_a_unique_key_in_use(tmp_path: Path, store: str) -> None:
    with serve(tmp_path, store) as served, Peer(served.server.port) as client:
        handle = served.fail(unique=b"key")
        other = client.submit(b"f", b"key", b"new", kind=Kind.SUBMIT_JOB_BG).decode()
        refused = served.http.call("POST", f"/jobs/{handle}/retry")
        assert refused.status == 409
        assert f"job {other} has its unique key" in refused.json["detail"]
        assert served.failed() == [handle]


@STORES
@WAYS
def test_failures_can_be_dead_or_forgotten_by_function(tmp_path: Path, store: str, fail: Fail) -> None:
    with serve(tmp_path, store, "--failures", "forget") as served:
        served.http.call("PATCH", "/functions/mail/settings", {"failures": "dead"})
        served.http.call("PATCH", "/functions/bill/settings", {"failures": "keep"})
        forgotten = served.fail(fail)
        assert served.job(forgotten)["payload"] is None
        refused = served.http.call("POST", f"/jobs/{forgotten}/retry")
        assert (refused.status, "its payload is not kept" in refused.json["detail"]) == (409, True)
        assert served.http.call("GET", f"/jobs/{forgotten}/payload").status == 404
        dead = served.fail(fail, b"mail")
        job = served.job(dead)
        assert (job["state"], job["payload"], len(job["trials"])) == ("dead", "in", 1)
        assert served.job(served.fail(fail, b"bill"))["payload"] == "in"


@STORES
def test_the_oldest_payloads_make_room(tmp_path: Path, store: str) -> None:
    limit = "--keep-failed-bytes-in-memory" if store == "memory" else "--keep-failed-bytes"
    with serve(tmp_path, store, limit, "2500") as served:
        handles = [served.fail(payload=bytes(1000)) for _ in range(4)]
        until(lambda: served.job(handles[1])["payload_size"] is None, "the last failure is committed")
        assert [served.job(handle)["payload_size"] for handle in handles] == [None, None, 1000, 1000]
        assert served.failed() == handles[::-1]


@STORES
def test_a_foreground_job_is_not_kept(tmp_path: Path, store: str) -> None:
    with serve(tmp_path, store) as served, Peer(served.server.port) as client, worker(served.server.port) as taker:
        handle = client.submit(b"f", b"", b"in")
        taker.register(b"f").grab()
        report(taker, handle)
        client.expect(Kind.WORK_FAIL, handle)
        assert served.failed() == []
