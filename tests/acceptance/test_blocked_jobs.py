"""Jobs that wait for other jobs: every way to submit them, and what operators see of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import geartrain
from tests.support import serving
from tests.support.gearman_peer import Kind, worker
from tests.support.http_peer import HttpWorker, Peer

LISTENS = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0")


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.ServerProcess]:
    file = tmp_path_factory.mktemp("blocked") / "jobs.db"
    with serving.serve("--store", "memory" if request.param == "memory" else f"sqlite://{file}", *LISTENS) as server:
        yield server


@pytest.fixture
def http(server: serving.ServerProcess) -> Peer:
    return Peer(server.urls[1])


@pytest.fixture
def taker(http: Peer, request: pytest.FixtureRequest) -> HttpWorker:
    """A worker for a function that has the name of the test."""
    return http.worker(request.node.name)


def run(taker: HttpWorker) -> str:
    """Run the next job; return its payload."""
    job = taker.claim()
    taker.complete(job["handle"])
    return str(job["payload"])


def state(http: Peer, handle: str) -> str:
    return str(http.get(f"/jobs/{handle}")["state"])


def test_a_job_runs_after_others(http: Peer, taker: HttpWorker, request: pytest.FixtureRequest) -> None:
    name = request.node.name
    first, second = (http.submit(name, payload)["handle"] for payload in ("first", "second"))
    last = http.submit(name, "last", after=[first, second])
    assert last["state"] == "blocked"
    shown = http.get(f"/jobs/{last['handle']}")
    assert (shown["after"], shown["waits_for"]) == ([first, second], f"2 jobs to end, such as {first}")
    assert http.get(f"/functions/{name}")["blocked"] == 1
    listed = http.get(f"/jobs?state=blocked&function={name}")
    assert [job["handle"] for job in listed["items"]] == [last["handle"]]
    assert [run(taker), run(taker), run(taker)] == ["first", "second", "last"]
    assert taker.claim() is None


def test_every_way_to_submit(
    server: serving.ServerProcess, http: Peer, taker: HttpWorker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    parent = http.submit(name, "parent")["handle"]
    for url in server.urls:
        with geartrain.Client(url) as client:
            child = client.submit(name, "library", background=True, after=[client.job(parent), parent.encode()])
            assert child.status().state == "blocked"
            client.submit_many([client.order(name, "many", background=True, after=[parent])])
        done = serving.run_command(tmp_path, "submit", name, "cli", "--after", parent, "--server", url)
        assert (done.returncode, done.stderr) == (0, "")
    assert http.get(f"/functions/{name}")["blocked"] == 6
    assert [run(taker) for _ in range(7)] == ["parent", *["library", "many", "cli"] * 2]


@pytest.mark.parametrize(("on_failure", "after"), [("cancel", "cancelled"), ("run", "queued")])
def test_a_parent_that_fails(http: Peer, on_failure: str, after: str) -> None:
    name = f"fails-{on_failure}"
    parent = http.submit(name)["handle"]
    child = http.submit(name, after=[parent], on_failure=on_failure)["handle"]
    taker = http.worker(name)
    taker.claim()
    taker.report(parent, "fail")
    assert state(http, child) == after
    if after == "cancelled":
        assert http.get(f"/jobs/{child}")["reason"] == f"job {parent}, which it waited for, ended as failed"
    else:
        run(taker)


def test_a_gearman_worker_of_the_usual_kind_gets_it(server: serving.ServerProcess, http: Peer) -> None:
    parent = http.submit("classic", "parent")["handle"]
    http.submit("classic", "child", after=[parent])
    with worker(server.port, b"classic") as taker:
        first = taker.grab()
        assert taker.take() is None
        taker.send(Kind.WORK_COMPLETE, first.handle, b"")
        assert taker.grab().data == b"child"


def test_jobs_that_have_ended(http: Peer, taker: HttpWorker, request: pytest.FixtureRequest) -> None:
    name = request.node.name
    done, failed = (http.submit(name)["handle"] for _ in range(2))
    run(taker)
    taker.claim()
    taker.report(failed, "fail")
    assert http.submit(name, after=[done])["state"] == "queued"
    refused = http.call("POST", "/jobs", {"function": name, "after": [failed]})
    assert (refused.status, refused.json["detail"]) == (
        409, f"job {failed} ended as failed, so nothing runs after it; with on_failure run it would",
    )  # fmt: skip
    assert http.submit(name, after=[failed], on_failure="run")["state"] == "queued"


def test_unknown_jobs_are_refused(server: serving.ServerProcess, http: Peer, tmp_path: Path) -> None:
    refused = http.call("POST", "/jobs", {"function": "f", "after": ["H:nowhere:99"]})
    assert refused.status == 404
    assert "there is no job H:nowhere:99 to wait for" in refused.json["detail"]
    told = serving.run_command(tmp_path, "submit", "f", "--after", "H:nowhere:99", "--server", server.urls[0])
    assert told.returncode == 1
    assert "there is no job H:nowhere:99 to wait for" in told.stderr
    assert http.call("POST", "/jobs", {"function": "f", "after": ["x"], "on_failure": "panic"}).status == 400


def test_cancelling_and_explaining(server: serving.ServerProcess, http: Peer, tmp_path: Path) -> None:
    parent = http.submit("cancelling")["handle"]
    child = http.submit("cancelling", after=[parent])["handle"]
    shown = serving.run_command(tmp_path, "show", child, "--server", server.urls[0])
    assert f"job {parent} to end" in shown.stdout
    done = serving.run_command(tmp_path, "cancel", parent, "--server", server.urls[0])
    assert done.returncode == 0, done.stderr
    assert (state(http, parent), state(http, child)) == ("cancelled", "cancelled")


def test_the_metrics_count_them(http: Peer) -> None:
    http.submit("counted", after=[http.submit("counted")["handle"]])
    metrics = http.ask("GET", "/metrics").data.decode()
    assert 'geartrain_jobs{function="counted",state="blocked"} 1' in metrics


def test_protocols_that_cannot_say_it() -> None:
    with pytest.raises(geartrain.UnsupportedError, match="periodic does not support jobs that wait for other jobs"):
        geartrain.AsyncClient("periodic://127.0.0.1:9").order("f", background=True, after=["H:1"])
    with pytest.raises(geartrain.UnsupportedError, match="only a background job can wait for others"):
        geartrain.AsyncClient("gearman://127.0.0.1:9").order("f", after=["H:1"])
    with pytest.raises(ValueError, match="a list of jobs or handles"):
        geartrain.AsyncClient("gearman://127.0.0.1:9").order("f", background=True, after="H:1")
