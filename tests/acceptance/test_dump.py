"""A dump carries everything: a server that loaded it answers every verb as the server that it was made of."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import until

LISTEN = (
    "--listen",
    f"gearman://{serving.HOST}:0",
    "--listen",
    f"http://{serving.HOST}:0",
    "--handle-prefix",
    "H:dump",
)
NUMBERS = ("queued", "running", "scheduled", "dead", "queued_bytes", "functions")  # of the overview
BYTES = bytes(range(256))


def fill(server: serving.ServerProcess, http: HttpPeer) -> None:
    """Jobs in every state, schedules, and everything that can be set."""
    http.call("POST", "/functions/paused/pause")
    http.call("PUT", "/functions/limited/limits", {"high": 3, "normal": 2, "low": 1})
    http.call("PATCH", "/functions/kept/settings", {"failures": "dead", "keep_for": 5000, "keep_failed_for": 9000})
    schedule = {"function": "report", "payload": {"base64": "/w=="}, "priority": "low", "unique": True}
    http.call("PUT", "/schedules/nightly", {"expression": "0 3 * * *", "timezone": "Europe/Berlin", **schedule})
    http.call("PUT", "/schedules/paused", {"expression": "*/5 * * * *", "function": "report"})
    http.call("POST", "/schedules/paused/pause")
    http.submit("paused", "later", delay=5000, unique="key", priority="high", keep_for=777, timeout=9)
    http.submit("paused", "mortal", expires=5000)
    with Peer(server.port) as client:
        for number in range(3):
            client.submit(b"paused", b"", BYTES + b"%d" % number, kind=Kind.SUBMIT_JOB_LOW_BG)
        for how in (Kind.WORK_FAIL, Kind.WORK_EXCEPTION, Kind.WORK_COMPLETE):
            for function in (b"f", b"kept"):
                end(server, client, function, how)
        cancelled = client.submit(b"f", b"", b"cancelled", kind=Kind.SUBMIT_JOB_BG)
        http.call("POST", f"/jobs/{cancelled.decode()}/cancel")
        lost(server, client)


def end(server: serving.ServerProcess, client: Peer, function: bytes, how: Kind) -> None:
    """A job with a failed attempt that a worker ends."""
    handle = client.submit(function, b"u-" + how.name.encode(), BYTES, kind=Kind.SUBMIT_JOB_BG)
    with worker(server.port, function) as leaving:
        leaving.grab()
    with worker(server.port, function) as taker:
        taker.send(Kind.SET_CLIENT_ID, b"taker \xff").grab()
        taker.send(how, handle, *([] if how is Kind.WORK_FAIL else [BYTES * 500])).silence()


def lost(server: serving.ServerProcess, client: Peer) -> None:
    """A job that is dead because two workers left it."""
    client.submit(b"lost", b"", b"lost", kind=Kind.SUBMIT_JOB_BG)
    for _ in range(2):
        with worker(server.port, b"lost") as leaving:
            leaving.grab()


def answers(server: serving.ServerProcess) -> dict[str, Any]:
    """The answers of every verb that shows something that is stored."""
    http = HttpPeer(server.urls[1])
    jobs = http.get("/jobs?limit=1000")["items"]
    overview = http.get("/overview")
    found: dict[str, Any] = {
        "overview": {name: overview[name] for name in NUMBERS},
        "functions": http.get("/functions")["items"],
        "schedules": http.get("/schedules"),
        "jobs": jobs,
        "failures": http.get("/failures"),
    }
    for job in jobs:
        for path in ("", "/payload", "/result"):
            answer = http.call("GET", f"/jobs/{job['handle']}{path}")
            found[f"{job['handle']}{path}"] = (answer.status, answer.data)
    return found


def command(folder: Path, *words: str) -> str:
    done = serving.run_command(folder, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def filled(tmp_path: Path) -> str:
    """The store of a server that stopped with everything in it."""
    store = f"sqlite://{tmp_path}/first.db"
    with serving.serve("--store", store, "--max-attempts", "2", *LISTEN) as server:
        http = HttpPeer(server.urls[1])
        fill(server, http)
        until(lambda: http.get("/overview")["dead"] == 3, "three jobs are dead")
        command(tmp_path, "dump", str(tmp_path / "live.dump"), "--store", store, "--records")
        server.stop()
    return store


def test_two_servers_answer_the_same(tmp_path: Path, filled: str) -> None:
    other = f"sqlite://{tmp_path}/second.db"
    command(tmp_path, "load", str(tmp_path / "live.dump"), "--store", other)
    found = []
    for store in (filled, other):
        with serving.serve("--store", store, *LISTEN) as server:
            found.append(answers(server))
    first, second = found
    assert first == second
    states = {job["state"] for job in first["jobs"]}
    assert states == {"scheduled", "queued", "done", "failed", "cancelled", "dead"}
    assert len(first["schedules"]) == 2
    assert [name for name in first["functions"] if name["settings"]["failures"] == "dead"]


def test_a_dump_of_what_was_loaded_is_the_same_dump(tmp_path: Path, filled: str) -> None:
    other = f"sqlite://{tmp_path}/second.db"
    lines = []
    for store, name in ((filled, "first"), (other, "second")):
        file = str(tmp_path / f"{name}.dump")
        command(tmp_path, "dump", file, "--store", store, "--records")
        lines.append(Path(file).read_text().splitlines()[1:])
        if name == "first":
            command(tmp_path, "load", file, "--store", other)
    assert lines[0] == lines[1]


def test_without_records_failed_jobs_are_still_there(tmp_path: Path, filled: str) -> None:
    other, file = f"sqlite://{tmp_path}/second.db", str(tmp_path / "jobs.dump")
    command(tmp_path, "dump", file, "--store", filled)
    command(tmp_path, "load", file, "--store", other)
    with serving.serve("--store", other, *LISTEN) as server:
        http = HttpPeer(server.urls[1])
        jobs = http.get("/jobs")["items"]
        assert not [job for job in jobs if job["state"] in ("done", "cancelled")]
        failed = [job["handle"] for job in jobs if job["state"] == "failed"]
        assert len(failed) == 2
        report = http.call("POST", "/jobs/bulk", {"action": "retry", "filter": {"state": "failed"}}).json
        assert report == {"done": 2, "refused": 0, "more": False}
        with worker(server.port, b"f") as taker:
            assert [taker.grab().data for _ in failed] == [BYTES, BYTES]


def test_settings_of_the_store_stay_unless_they_are_to_be_replaced(tmp_path: Path, filled: str) -> None:
    other, file = f"sqlite://{tmp_path}/second.db", str(tmp_path / "live.dump")
    with serving.serve("--store", other, *LISTEN) as server:
        http = HttpPeer(server.urls[1])
        http.call("POST", "/functions/own/pause")
        http.call("PATCH", "/functions/kept/settings", {"failures": "forget"})
        http.call("PUT", "/schedules/nightly", {"expression": "0 4 * * *", "function": "own"})
        server.stop()
    expected = (("0 4 * * *", "forget"), ("0 3 * * *", "dead"))
    for flags, (expression, failures) in zip(((), ("--replace",)), expected, strict=True):
        command(tmp_path, "load", file, "--store", other, *flags)
        with serving.serve("--store", other, *LISTEN) as server:
            http = HttpPeer(server.urls[1])
            assert [each["name"] for each in http.get("/schedules")] == ["nightly", "paused"]
            assert http.get("/schedules/nightly")["expression"] == expression
            assert http.get("/functions/kept")["settings"]["failures"] == failures
            assert (http.get("/functions/own")["paused"], http.get("/functions/paused")["paused"]) == (True, True)
            assert http.get("/functions/limited")["limits"] == [3, 2, 1]
            server.stop()
