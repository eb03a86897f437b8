"""Jobs submitted by HTTP and executed by Gearman, and the reverse. (tests/crossing has the table of all pairs.)"""

import concurrent.futures
import json
from collections.abc import Iterator

import pytest

from tests.support import gearman_peer, serving
from tests.support.gearman_peer import Kind
from tests.support.http_peer import Event, Peer


@pytest.fixture
def gearman(server: serving.ServerProcess) -> Iterator[gearman_peer.Peer]:
    with gearman_peer.Peer(server.port) as connection:
        yield connection


def test_submitted_by_http_and_run_by_gearman(peer: Peer, gearman: gearman_peer.Peer, function: str) -> None:
    gearman.register(function.encode())
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(peer.submit, function, "hello", wait=15)
        gearman.send(Kind.PRE_SLEEP)
        gearman.expect(Kind.NOOP)
        gearman.send(Kind.GRAB_JOB)
        job = gearman_peer.assignment(Kind.JOB_ASSIGN, gearman.body(Kind.JOB_ASSIGN))
        assert job.data == b"hello"
        gearman.send(Kind.WORK_COMPLETE, job.handle, b"olleh")
        view = waiting.result()
    assert (view["state"], view["result"], view["handle"]) == ("done", "olleh", job.handle.decode())


def test_reports_of_a_gearman_worker_are_events(peer: Peer, gearman: gearman_peer.Peer, function: str) -> None:
    handle = peer.submit(function)["handle"].encode()
    gearman.register(function.encode())
    gearman.send(Kind.GRAB_JOB)
    gearman.body(Kind.JOB_ASSIGN)
    with peer.stream(f"/jobs/{handle.decode()}/events") as stream:
        gearman.send(Kind.WORK_STATUS, handle, b"2", b"3")
        gearman.send(Kind.WORK_DATA, handle, b"some")
        gearman.send(Kind.WORK_WARNING, handle, b"hm")
        gearman.send(Kind.WORK_FAIL, handle)
        *news, last = list(stream)
    assert news == [
        Event("progress", {"numerator": 2, "denominator": 3}),
        Event("data", {"data": "some"}),
        Event("warning", {"data": "hm"}),
    ]
    assert (last.name, last.data["state"]) == ("failed", "failed")


def test_submitted_by_gearman_and_run_by_http(peer: Peer, gearman: gearman_peer.Peer, function: str) -> None:
    gearman.send(Kind.SUBMIT_JOB_HIGH, function.encode(), b"key", b"payload")
    handle = gearman.body(Kind.JOB_CREATED)
    worker = peer.worker(function)
    job = worker.claim(wait=15)
    assert (job["handle"], job["unique"], job["priority"]) == (handle.decode(), "key", "high")
    assert (job["payload"], job["background"]) == ("payload", False)
    worker.report(job["handle"], "progress", {"numerator": 5, "denominator": 10})
    gearman.expect(Kind.WORK_STATUS, handle, b"5", b"10")
    worker.report(job["handle"], "data", data=b"\0part")
    gearman.expect(Kind.WORK_DATA, handle, b"\0part")
    worker.report(job["handle"], "warning", data=b"careful")
    gearman.expect(Kind.WORK_WARNING, handle, b"careful")
    worker.complete(job["handle"], b"\0result\xff")
    gearman.expect(Kind.WORK_COMPLETE, handle, b"\0result\xff")


def test_an_exception_of_an_http_worker_reaches_a_gearman_client(
    peer: Peer, gearman: gearman_peer.Peer, function: str
) -> None:
    gearman.send(Kind.OPTION_REQ, b"exceptions")
    gearman.expect(Kind.OPTION_RES, b"exceptions")
    gearman.send(Kind.SUBMIT_JOB, function.encode(), b"", b"")
    handle = gearman.body(Kind.JOB_CREATED)
    worker = peer.worker(function)
    worker.claim(wait=15)
    assert worker.report(handle.decode(), "fail", {"data": "boom"}).status == 204
    gearman.expect(Kind.WORK_EXCEPTION, handle, b"boom")


def test_gearmans_status_counts_http_jobs_and_workers(peer: Peer, gearman: gearman_peer.Peer, function: str) -> None:
    peer.submit(function)
    peer.submit(function)
    peer.worker(function).claim()
    assert f"{function}\t2\t1\t1".encode() in gearman.text("status").block()


def test_the_control_function_answers(peer: Peer) -> None:
    job = peer.submit("geartrain.control", '{"do": "ping"}', background=False, wait=15)
    assert json.loads(job["result"])["answer"]["server"] == "geartrain"
