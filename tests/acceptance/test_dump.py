"""A dump carries everything: a server that loaded it answers every verb as the server that it was made of."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
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
MEMORY = ("--store", "memory", *LISTEN)
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


# Running servers


def entries(file: Path) -> dict[tuple[str, Any], Any]:
    """The lines of a dump by what they are about, without the header."""
    lines = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    found = {(line["geartrain"], line.get("id", line.get("name"))): line for line in lines}
    assert len(found) == len(lines), "a job or a value is there twice"
    return found


def dump_server(folder: Path, server: serving.ServerProcess, name: str, *flags: str) -> Path:
    command(folder, "dump", name, "--server", server.url, *flags)
    return folder / name


def load_server(folder: Path, server: serving.ServerProcess, file: Path | str, *flags: str) -> Any:
    return json.loads(command(folder, "load", str(file), "--server", server.url, "--json", *flags))


def test_from_a_file_to_memory_and_back(tmp_path: Path, filled: str) -> None:
    """Every field of every job, record and value is the same at the end."""
    first = tmp_path / "first.dump"
    command(tmp_path, "dump", str(first), "--store", filled, "--records")
    expected = entries(first)
    with serving.serve(*MEMORY) as server:
        report = load_server(tmp_path, server, first)
        end = expected["end", None]
        assert (report["jobs"], report["records"], report["values"]) == (end["jobs"], end["records"], end["values"])
        assert (report["present"], report["clashing"], report["replaced"]) == (0, 0, 0)
        assert entries(dump_server(tmp_path, server, "second.dump", "--records")) == expected
    other = f"sqlite://{tmp_path}/other.db"
    command(tmp_path, "load", "second.dump", "--store", other)
    command(tmp_path, "dump", "third.dump", "--store", other, "--records")
    assert entries(tmp_path / "third.dump") == expected
    assert any(line.get("remove_at") for line in expected.values())
    assert any(line.get("job") for line in expected.values())


def test_a_server_with_the_memory_store_answers_as_the_one_with_the_file(tmp_path: Path, filled: str) -> None:
    found = []
    with serving.serve("--store", filled, *LISTEN) as server:
        found.append(answers(server))
    with serving.serve(*MEMORY) as server:
        load_server(tmp_path, server, tmp_path / "live.dump")
        found.append(answers(server))
    for answer in found:
        answer["overview"].pop("queued_bytes")  # what is in memory: of dead jobs, no payloads if there is a file
        for job in answer["jobs"]:
            job.pop("removed_at")  # memory limits records by number only
        for name in [name for name in answer if name.startswith("H:") and "/" not in name]:
            status, data = answer.pop(name)
            answer[name] = (status, {**json.loads(data), "removed_at": None})
    assert found[0] == found[1]


def test_the_dump_of_a_running_server_is_that_of_its_file(tmp_path: Path, filled: str) -> None:
    command(tmp_path, "dump", "file.dump", "--store", filled, "--records")
    with serving.serve("--store", filled, *LISTEN) as server:
        assert entries(dump_server(tmp_path, server, "server.dump", "--records")) == entries(tmp_path / "file.dump")
        whole = entries(dump_server(tmp_path, server, "whole.dump"))
        assert {line["state"] for (kind, _), line in whole.items() if kind == "record"} == {"failed"}
        refused = serving.run_command(tmp_path, "load", "file.dump", "--server", server.url)
        assert (refused.returncode, refused.stdout) != (0, "")
        assert f"this server keeps its jobs in {filled}; stop it" in refused.stderr


def test_a_loaded_job_runs_and_new_jobs_get_other_handles(tmp_path: Path, filled: str) -> None:
    with serving.serve(*MEMORY) as server, Peer(server.port) as client:
        load_server(tmp_path, server, tmp_path / "live.dump")
        http = HttpPeer(server.urls[1])
        handles = {job["handle"] for job in http.get("/jobs?limit=1000")["items"]}
        assert client.submit(b"new", b"", b"", kind=Kind.SUBMIT_JOB_BG).decode() not in handles
        with worker(server.port, b"paused") as taker:
            assert taker.take() is None, "the function is paused, as it was"
            http.call("POST", "/functions/paused/resume")
            jobs = [taker.grab() for _ in range(4)]
            assert [job.data for job in jobs] == [b"mortal", *(BYTES + b"%d" % number for number in range(3))]
            assert {job.handle.decode() for job in jobs} <= handles
            for job in jobs:
                taker.send(Kind.WORK_COMPLETE, job.handle, b"ran").silence()
        answer = http.call("GET", f"/jobs/{jobs[0].handle.decode()}/result")
        assert (answer.status, answer.data) == (200, b"ran")
        assert http.call("POST", "/jobs/bulk", {"action": "retry", "filter": {"state": "failed"}}).json["done"] == 2
        again = client.submit(b"paused", b"key", b"", kind=Kind.SUBMIT_JOB_BG)
        assert again.decode() in handles, "its unique key belongs to the loaded job"


def test_loading_twice_loads_nothing_twice(tmp_path: Path, filled: str) -> None:
    with serving.serve(*MEMORY) as server:
        first = load_server(tmp_path, server, tmp_path / "live.dump")
        before = answers(server)
        second = load_server(tmp_path, server, tmp_path / "live.dump")
        assert answers(server) == before
    assert (second["jobs"], second["records"], second["values"], second["clashing"]) == (0, 0, 0, 0)
    assert second["present"] == first["jobs"] + first["records"] + first["values"]


def test_what_is_there_stays_unless_it_is_to_be_replaced(tmp_path: Path, filled: str) -> None:
    with serving.serve(*MEMORY) as server:
        http = HttpPeer(server.urls[1])
        http.call("PATCH", "/functions/kept/settings", {"failures": "forget"})
        http.call("PUT", "/schedules/nightly", {"expression": "0 4 * * *", "function": "own"})
        mine = http.submit("paused", "mine", unique="key")["handle"]
        done = serving.run_command(tmp_path, "load", "live.dump", "--server", server.url)
        assert f"{mine} has the same unique key" in done.stderr
        assert http.get("/schedules/nightly")["expression"] == "0 4 * * *"
        assert http.get("/functions/kept")["settings"]["failures"] == "forget"
        report = load_server(tmp_path, server, tmp_path / "live.dump", "--replace")
        assert (report["jobs"], report["clashing"], report["present"]) == (8, 0, 3)
        assert http.get("/schedules/nightly")["expression"] == "0 3 * * *"
        assert http.get("/functions/kept")["settings"]["failures"] == "dead"
        assert http.get(f"/jobs/{mine}")["state"] == "cancelled"
        after, live = entries(dump_server(tmp_path, server, "after.dump")), entries(tmp_path / "live.dump")
        assert {key: line for key, line in after.items() if key[0] == "job"} == {
            key: line for key, line in live.items() if key[0] == "job"
        }


@pytest.mark.parametrize("place", [3, -2])
def test_a_broken_line_is_named_and_nothing_is_loaded(tmp_path: Path, filled: str, place: int) -> None:
    lines = (tmp_path / "live.dump").read_text().splitlines(keepends=True)
    lines[place] = lines[place].replace('"geartrain":', '"geartrian":')
    (tmp_path / "broken.dump").write_text("".join(lines))
    number = place % len(lines) + 1
    with serving.serve(*MEMORY) as server:
        for words, text in ((("broken.dump",), ""), (("-",), "".join(lines))):
            done = serving.run_command(tmp_path, "load", *words, "--server", server.url, stdin=text)
            assert done.returncode != 0
            assert f"line {number}: " in done.stderr
            assert done.stderr.endswith("; nothing was loaded\n")
        http = HttpPeer(server.urls[1])
        assert (http.get("/jobs")["items"], http.get("/functions")["items"], http.get("/schedules")) == ([], [], [])


def test_a_server_and_a_store_cannot_both_be_named(tmp_path: Path) -> None:
    for verb in ("dump", "load"):
        done = serving.run_command(tmp_path, verb, "x.dump", "--server", "gearman://127.0.0.1", "--store", "memory")
        assert done.returncode == 2
        assert "name a server or a store, not both" in done.stderr


@contextlib.contextmanager
def repeated(*steps: Callable[[], None]) -> Iterator[None]:
    """Each step in a thread of its own, again and again, until the block ends."""
    over = threading.Event()
    failures: list[BaseException] = []

    def repeat(step: Callable[[], None]) -> None:
        try:
            while not over.is_set():
                step()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=repeat, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert failures == []


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_under_load_no_job_is_missing_and_none_is_there_twice(tmp_path: Path, store: str) -> None:
    """Jobs come and end, and some fail and are retried again and again, while the dump is made."""
    url = "memory" if store == "memory" else f"sqlite://{tmp_path}/jobs.db"
    with serving.serve("--store", url, *LISTEN) as server, contextlib.ExitStack() as peers:
        client, submitter = peers.enter_context(Peer(server.port)), peers.enter_context(Peer(server.port))
        taker = peers.enter_context(worker(server.port, b"run"))
        failing = peers.enter_context(worker(server.port, b"flip"))
        http = HttpPeer(server.urls[1])
        ended: set[bytes] = set()
        kept = [client.submit(b"keep", b"", bytes(500), kind=Kind.SUBMIT_JOB_BG) for _ in range(3000)]
        flipped = [client.submit(b"flip", b"", b"flip", kind=Kind.SUBMIT_JOB_BG) for _ in range(20)]
        run = [client.submit(b"run", b"", b"run", kind=Kind.SUBMIT_JOB_BG) for _ in range(500)]

        def submit() -> None:
            submitter.submit(b"run", b"", b"later", kind=Kind.SUBMIT_JOB_BG)

        def work() -> None:
            if (job := taker.take()) is not None:
                ended.add(job.handle)
                taker.send(Kind.WORK_COMPLETE, job.handle, b"")

        def fail() -> None:
            if (job := failing.take()) is not None:
                failing.send(Kind.WORK_FAIL, job.handle)

        def retry() -> None:
            http.call("POST", "/jobs/bulk", {"action": "retry", "filter": {"state": "failed", "function": "flip"}})

        with repeated(submit, work, fail, retry):
            for number in range(2):
                dumped = entries(dump_server(tmp_path, server, f"{number}.dump"))
                handles = {line.get("handle", "").encode() for line in dumped.values()}
                assert handles.issuperset(kept)
                assert handles.issuperset(flipped)
                assert handles.issuperset(set(run) - ended)
    command(tmp_path, "load", "1.dump", "--store", f"sqlite://{tmp_path}/loaded.db")
