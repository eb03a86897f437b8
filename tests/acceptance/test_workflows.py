"""Workflows over real connections: submitted by HTTP, the control function and the command line, run by any worker."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import geartrain
from geartrain.engine.names import WORKFLOW
from tests.support import serving
from tests.support.http_peer import HttpWorker, Peer
from tests.support.waiting import wait_for

LISTENS = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0")


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.ServerProcess]:
    file = tmp_path_factory.mktemp("workflows") / "jobs.db"
    with serving.serve("--store", "memory" if request.param == "memory" else f"sqlite://{file}", *LISTENS) as server:
        yield server


@pytest.fixture
def http(server: serving.ServerProcess) -> Peer:
    return Peer(server.urls[1])


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Of a function that only this test uses."""
    return str(request.node.name)


@pytest.fixture
def taker(http: Peer, name: str) -> HttpWorker:
    return http.worker(name)


def diamond(name: str) -> list[dict[str, object]]:
    return [
        {"function": name, "payload": "top"},
        {"function": name, "payload": "left", "after": [0]},
        {"function": name, "payload": "right", "after": [0]},
        {"function": name, "payload": "bottom", "after": [1, 2]},
    ]


def run(taker: HttpWorker) -> str:
    """Run the next job; return its payload."""
    job = taker.claim()
    taker.complete(job["handle"])
    return str(job["payload"])


def test_members_run_in_their_order(http: Peer, taker: HttpWorker, name: str) -> None:
    workflow = http.post("/workflows", {"name": "diamond", "jobs": diamond(name)})
    shown = http.get(f"/workflows/{workflow['handle']}")
    assert (shown["name"], shown["state"], shown["states"]) == ("diamond", "running", {"queued": 1, "blocked": 3})
    assert [job["handle"] for job in shown["jobs"]] == workflow["jobs"]
    assert [job["after"] for job in shown["jobs"]] == [[], [[0, 0]], [[0, 0]], [[1, 2]]]
    assert [(group["count"], group["parents"]) for group in shown["groups"]] == [(1, []), (2, [0]), (1, [1])]
    assert [run(taker) for _ in range(4)] == ["top", "left", "right", "bottom"]
    shown = http.get(f"/workflows/{workflow['handle']}")
    assert (shown["state"], shown["states"], shown["finished_at"] is not None) == ("done", {"done": 4}, True)
    listed = http.get(f"/jobs?function={WORKFLOW.decode()}")["items"]
    assert next(job["workflow"] for job in listed if job["handle"] == workflow["handle"]) == "diamond"


def test_pages_of_members(http: Peer, name: str) -> None:
    jobs = [{"function": name} for _ in range(25)]
    handle = http.post("/workflows", {"jobs": jobs})["handle"]
    page = http.get(f"/workflows/{handle}?limit=20")
    rest = http.get(f"/workflows/{handle}?limit=20&after={page['after']}")
    assert [job["place"] for job in (*page["jobs"], *rest["jobs"])] == list(range(25))
    assert rest["after"] == ""


def test_pages_of_members_in_a_state(http: Peer, taker: HttpWorker, name: str) -> None:
    jobs = [*({"function": name} for _ in range(5)), *({"function": name, "after": [4]} for _ in range(5))]
    workflow = http.post("/workflows", {"jobs": jobs})
    run(taker)
    page = http.get(f"/workflows/{workflow['handle']}?state=queued&limit=3")
    rest = http.get(f"/workflows/{workflow['handle']}?state=queued&limit=3&after={page['after']}")
    assert [job["place"] for job in (*page["jobs"], *rest["jobs"])] == [1, 2, 3, 4]
    assert (rest["after"], rest["states"]) == ("", {"done": 1, "queued": 4, "blocked": 5})
    assert [group["handle"] for group in rest["groups"]] == [workflow["jobs"][0], workflow["jobs"][5]]
    assert http.call("GET", f"/workflows/{workflow['handle']}?state=bored").status in (400, 422)


def test_lists_have_the_progress_of_workflows(http: Peer, taker: HttpWorker, name: str) -> None:
    handle = http.post("/workflows", {"jobs": diamond(name)})["handle"]

    def progress() -> tuple[int, int]:
        listed = http.get(f"/jobs?function={WORKFLOW.decode()}")["items"]
        return next((job["numerator"], job["denominator"]) for job in listed if job["handle"] == handle)

    assert progress() == (0, 4)
    run(taker)
    assert progress() == (1, 4)
    for _ in range(3):
        run(taker)
    assert progress() == (4, 4)


def test_retry_goes_on_from_what_failed(http: Peer, taker: HttpWorker, name: str) -> None:
    workflow = http.post("/workflows", {"jobs": diamond(name)})
    assert run(taker) == "top"
    taker.report(taker.claim()["handle"], "fail")
    assert run(taker) == "right"
    shown = http.get(f"/workflows/{workflow['handle']}")
    assert shown["state"] == "failed"
    assert shown["states"] == {"done": 2, "failed": 1, "cancelled": 1}
    assert shown["reason"] == f"job {workflow['jobs'][1]} ended as failed"
    assert http.post(f"/jobs/{workflow['handle']}/retry")["state"] == "blocked"
    assert [run(taker), run(taker)] == ["left", "bottom"]
    assert http.get(f"/workflows/{workflow['handle']}")["state"] == "done"


def test_cancelling_ends_all_members(http: Peer, taker: HttpWorker, name: str) -> None:
    workflow = http.post("/workflows", {"jobs": diamond(name)})
    assert run(taker) == "top"
    http.post(f"/jobs/{workflow['handle']}/cancel")
    shown = http.get(f"/workflows/{workflow['handle']}")
    assert (shown["state"], shown["states"]) == ("cancelled", {"done": 1, "cancelled": 3})
    assert taker.claim() is None


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"jobs": []}, "a workflow has 1 to 1,000,000 jobs"),
        ({"jobs": [{"function": "f", "after": [0]}]}, "job 0 waits for itself"),
        ({"jobs": [{"function": "f", "after": [7]}]}, "job 0 waits for job 7"),
        ({"jobs": [{"function": "f", "unique": "k"}]}, "unique"),
        ({"jobs": [{"function": "f"}], "name": "n" * 201}, "length <= 200"),
        ({"jobs": [{"function": "f", "run_at": -1}]}, "run_at of job 0"),
        ({"jobs": [{"function": "f", "run_at": 5, "expires_at": 4}]}, "expire before"),
    ],
)
def test_a_bad_workflow_is_refused_as_a_whole(http: Peer, body: dict[str, object], complaint: str) -> None:
    before = http.get("/overview")["submitted"]
    answer = http.call("POST", "/workflows", body)
    assert answer.status in (400, 422), answer
    assert complaint in answer.json["detail"]
    assert http.get("/overview")["submitted"] == before


def test_a_job_is_no_workflow(http: Peer, name: str) -> None:
    handle = http.submit(name)["handle"]
    answer = http.call("GET", f"/workflows/{handle}")
    assert answer.status == 404
    assert answer.json["detail"].startswith(f"no workflow {handle}")


def test_the_command_line(server: serving.ServerProcess, http: Peer, tmp_path: Path, name: str) -> None:
    file = tmp_path / "diamond.json"
    file.write_text(json.dumps({"name": "diamond", "jobs": diamond(name)}))
    taker = http.worker(name)
    handles: list[str] = []

    def submit() -> None:
        done = serving.run_command(tmp_path, "workflow", "submit", str(file), "--wait", "--server", server.urls[0])
        assert (done.returncode, done.stderr) == (0, "")
        handles.append(done.stdout.strip())

    waiting = threading.Thread(target=submit)
    waiting.start()
    wait_for(lambda: http.get(f"/functions/{name}")["queued"], "the workflow is there")
    assert [run(taker) for _ in range(4)] == ["top", "left", "right", "bottom"]
    waiting.join()
    (handle,) = handles
    for command in (("show", handle, "--limit", "2"), ("list",)):
        done = serving.run_command(tmp_path, "workflow", *command, "--server", server.urls[0])
        assert done.returncode == 0
        assert handle in done.stdout
        assert "diamond" in done.stdout
    shown = serving.run_command(tmp_path, "workflow", "show", handle, "--json", "--server", server.urls[0])
    assert [job["state"] for job in json.loads(shown.stdout)["jobs"]] == ["done"] * 4


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{", "is not JSON"), ("[]", "is not a workflow"), ('{"jobs": [{"function": "f", "after": [0]}]}', "itself")],
)
def test_a_bad_file(server: serving.ServerProcess, tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    done = serving.run_command(tmp_path, "workflow", "submit", str(file), "--server", server.urls[0])
    assert done.returncode == 1
    assert complaint in done.stderr


def test_results_for_the_worker_of_another_member(server: serving.ServerProcess, http: Peer, name: str) -> None:
    workflow = http.post("/workflows", {"jobs": [{"function": name} for _ in range(5)]})
    taker = http.worker(name)
    for result in (b"zero", b"\xff"):
        taker.complete(taker.claim()["handle"], result)
    taker.report(taker.claim()["handle"], "fail")
    first = int(workflow["jobs"][0].rpartition(":")[2])
    with geartrain.Client(server.urls[0]) as client:
        payload = {
            "do": "results",
            "handle": workflow["jobs"][4],
            "ids": f"{first}-{first + 2} {first + 4}-{first + 4}",
        }
        answer = json.loads(client.run("geartrain.control", json.dumps(payload)))["answer"]
        bad = json.loads(client.run("geartrain.control", json.dumps({**payload, "ids": "9-8"})))["error"]
    ends = {found["id"] - first: (found["state"], found["result"]) for found in answer["results"]}
    assert ends == {0: ("done", "zero"), 1: ("done", {"base64": "/w=="}), 2: ("failed", "")}
    assert answer["rest"] == ""
    assert bad["text"] == "ids: '9-8' is not a range of numbers, such as 8-1007"


def test_large_results_come_in_several_answers(server: serving.ServerProcess, http: Peer, name: str) -> None:
    workflow = http.post("/workflows", {"jobs": [{"function": name} for _ in range(4)]})
    taker = http.worker(name)
    for number in range(3):
        taker.complete(taker.claim()["handle"], b"%d" % number * 5_000_000)
    first = int(workflow["jobs"][0].rpartition(":")[2])
    wanted, found = f"{first}-{first + 2}", []
    with geartrain.Client(server.urls[0]) as client:
        while wanted:
            payload = {"do": "results", "handle": workflow["jobs"][3], "ids": wanted}
            answer = json.loads(client.run("geartrain.control", json.dumps(payload)))["answer"]
            found.append([(result["id"] - first, result["result"][:1]) for result in answer["results"]])
            wanted = answer["rest"]
    assert found == [[(2, "2"), (1, "1")], [(0, "0")]]


@pytest.mark.parametrize("count", [0, 10**15])
def test_a_job_that_looks_like_a_workflow_is_none(http: Peer, count: int) -> None:
    groups = [{"function": "f", "count": count}]
    graph = json.dumps({"name": "forged", "count": count, "groups": groups}, separators=(",", ":"))
    handle = http.submit(WORKFLOW.decode(), graph)["handle"]
    assert http.call("GET", f"/workflows/{handle}").status == 404
    taker = http.worker(WORKFLOW.decode())
    taker.complete(taker.claim()["handle"], graph.encode())
    assert http.call("GET", f"/workflows/{handle}").status == 404


def test_results_of_too_many_jobs_are_refused(server: serving.ServerProcess, http: Peer, name: str) -> None:
    handle = http.submit(name)["handle"]
    payload = {"do": "results", "handle": handle, "ids": "1-999999999999999999"}
    with geartrain.Client(server.urls[0]) as client:
        error = json.loads(client.run("geartrain.control", json.dumps(payload)))["error"]
    assert error["text"] == "ids: a workflow has at most 1,000,000 jobs (max_workflow_jobs)"


def test_a_job_of_its_function_that_waits_for_others_behaves_like_a_workflow(http: Peer, name: str) -> None:
    jobs = [http.submit(name)["handle"] for _ in range(3)]
    handle = http.submit(WORKFLOW.decode(), after=[jobs[0], jobs[2]], on_failure="run")["handle"]
    taker = http.worker(name)
    taker.report(taker.claim()["handle"], "fail")
    for _ in range(2):
        taker.complete(taker.claim()["handle"])
    assert http.get(f"/jobs/{handle}")["state"] == "failed"
    http.post(f"/jobs/{handle}/retry")
    assert taker.claim()["handle"] == jobs[0]
    taker.complete(jobs[0])
    assert http.get(f"/jobs/{handle}")["state"] == "done"
