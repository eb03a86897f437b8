"""`geartrain jobs`: the document's "Long-term result logging", asked for on the command line."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from geartrain.model import Job, JobState
from geartrain.store import contract
from geartrain.store.sqlite import SqliteStore
from tests.support import process, serving
from tests.support.danga_peer import THROW_AWAY, Peer

DAY = 86400.0
NOON = 1_725_969_600.0  # 2024-09-10 12:00 UTC


def run(store: Path | str, *words: str) -> subprocess.CompletedProcess[str]:
    url = store if isinstance(store, str) else f"sqlite://{store}"
    home = Path(store).parent if isinstance(store, Path) else Path("/nonexistent")
    environment = {**process.clean_environment(home), "TZ": "UTC", "COLUMNS": "200", "TERM": "dumb"}
    command = [str(serving.installed_command()), "jobs", "--store", url, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def entries(store: Path, *words: str) -> list[dict[str, Any]]:
    answer = run(store, "--json", *words)
    assert (answer.returncode, answer.stderr) == (0, "")
    return [json.loads(line) for line in answer.stdout.splitlines()]


def record(id: int, function: bytes, state: JobState, finished_at: float, code: int = 0) -> contract.Record:
    handle, reason = b"H:lap:%d" % id, "out of paper" if code else ""
    return contract.Record(
        id, handle, function, b"key", 1, int(state), finished_at - 90, finished_at - 60, finished_at, 2, "danga",
        "gearman", b"printer-1", code, reason, b"\xff\xfe" if id == 4 else b"result %d" % id,
    )  # fmt: skip


def job(id: int, function: bytes, run_at: float, state: JobState = JobState.QUEUED) -> Job:
    made = Job(id, b"H:lap:%d" % id, function, b"", b"", 1, True, run_at, NOON, "gearman")
    made.state = state
    made.reason = "no worker survived it" if state is JobState.DEAD else ""
    return made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Five jobs that ended on five days, and three that live."""
    path = tmp_path / "jobs.db"
    made = SqliteStore(path)
    made.open()
    batch = contract.Batch()
    batch.finished = [
        record(1, b"mail", JobState.DONE, NOON - 4 * DAY),
        record(2, b"print", JobState.FAILED, NOON - 3 * DAY, code=28),
        record(3, b"mail", JobState.CANCELLED, NOON - 2 * DAY, code=1),
        record(4, b"mail", JobState.DONE, NOON - 1 * DAY),
        record(5, b"print", JobState.DONE, NOON),
    ]
    jobs = [
        job(6, b"mail", NOON),
        job(7, b"mail", time.time() + DAY),
        job(8, b"print", NOON, JobState.DEAD),
    ]
    batch.changed = [contract.row(each) for each in jobs]
    made.commit(batch)
    made.close(9)
    return path


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ([], {1, 2, 3, 4, 5, 6, 7, 8}),
        (["--function", "mail"], {1, 3, 4, 6, 7}),
        (["--function", "mai"], set()),
        (["--state", "done"], {1, 4, 5}),
        (["--state", "failed"], {2}),
        (["--state", "cancelled"], {3}),
        (["--state", "queued"], {6}),
        (["--state", "scheduled"], {7}),
        (["--state", "dead"], {8}),
        (["--handle", "H:lap:2"], {2}),
        (["--handle", "H:lap:7"], {7}),
        (["--handle", "H:lap:77"], set()),
        (["--handle", "H:lap:2", "--state", "done"], set()),
        (["--since", "2024-09-08"], {3, 4, 5, 6, 7, 8}),
        (["--since", "2024-09-08T12:00Z", "--until", "2024-09-10T12:00:00+00:00"], {3, 4}),
        (["--until", "@1725710400"], {1}),
        (["--since", "2024-09-07 13:00", "--function", "mail", "--state", "done"], {4}),
        (["--since", "1s"], set()),
        (["--until", "1s"], {1, 2, 3, 4, 5, 6, 7, 8}),
        (["--limit", "3"], {8, 7, 6}),
        (["--state", "done", "--limit", "1"], {5}),
    ],
)  # fmt: skip
def test_questions(store: Path, words: list[str], ids: set[int]) -> None:
    assert {entry["id"] for entry in entries(store, *words)} == ids


def test_the_newest_come_first(store: Path) -> None:
    assert [entry["id"] for entry in entries(store)] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_everything_that_is_known_of_a_job(store: Path) -> None:
    assert entries(store, "--handle", "H:lap:2") == [
        {
            "id": 2, "handle": "H:lap:2", "function": "print", "unique": "key", "state": "failed",
            "submitted_at": NOON - 3 * DAY - 90, "run_at": None, "started_at": NOON - 3 * DAY - 60,
            "finished_at": NOON - 3 * DAY, "attempts": 2, "door": "danga", "worker_door": "gearman",
            "worker": "printer-1", "code": 28, "reason": "out of paper", "result": "result 2", "result_size": 8,
            "result_kept": 8,
        }
    ]  # fmt: skip
    [binary] = entries(store, "--handle", "H:lap:4")
    assert binary["result"] == {"base64": "//4="}


def test_a_table_for_people(store: Path) -> None:
    answer = run(store, "--until", "2024-09-10")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert [line.split("  ")[0] for line in answer.stdout.splitlines()] == [
        "HANDLE",
        "H:lap:4",
        "H:lap:3",
        "H:lap:2",
        "H:lap:1",
    ]
    failed = " ".join(answer.stdout.splitlines()[3].split())
    assert failed == "H:lap:2 print failed 2024-09-07 11:58:30 2024-09-07 11:59:00 60.0s 2 28 out of paper"
    assert "(2 bytes)" in answer.stdout.splitlines()[1]


def test_what_is_cut_off_is_said(store: Path) -> None:
    assert "only the newest 3 are shown" in run(store, "--limit", "3").stderr
    assert run(store, "--function", "nobody").stderr == "no jobs match\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--state", "running"], 1, "use --state queued, which here includes running jobs"),
        (["--state", "asleep"], 2, "'asleep' is not one of"),
        (["--since", "yesterday"], 2, "'yesterday' is not a time such as 2h"),
        (["--until", "12"], 2, "'12' is not a time"),
        (["--limit", "0"], 2, "--limit"),
    ],
)
def test_questions_that_make_no_sense(store: Path, words: list[str], code: int, said: str) -> None:
    answer = run(store, *words)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in " ".join(answer.stderr.replace("│", " ").split())


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    answer = run(tmp_path / "none.db")
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"geartrain: {tmp_path}/none.db does not exist")
    assert run("memory").returncode == 1


def test_nobody_reads_to_the_end(store: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        command = [str(serving.installed_command()), "jobs", "--json", "--store", f"sqlite://{store}"]
        answer = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=60)
    assert answer.stderr == b""


def test_beside_a_running_server(tmp_path: Path) -> None:
    store = tmp_path / "jobs.db"
    with (
        serving.serve("--listen", "danga://127.0.0.1:0", "--store", f"sqlite://{store}") as server,
        Peer(server.port) as application,
        Peer(server.port).connect(b"mail", b"captcha") as worker,
    ):
        done = application.create(b"mail", b"", b"hello")
        worker.grab()
        worker.finish(b"sent")
        failed = application.create(b"mail")
        worker.grab()
        worker.finish(b"no such user", code=67)
        thrown = application.create(b"captcha", type=THROW_AWAY)
        worker.grab()
        worker.finish(b"500 made")
        waiting = application.create(b"mail")
        for handle in (done, failed, thrown):
            application.result(handle)
        found = {entry["handle"].encode(): entry for entry in entries(store)}
        told = {handle: (entry["state"], entry["code"], entry["result"]) for handle, entry in found.items()}
        assert told == {
            done: ("done", 0, "sent"),
            failed: ("failed", 67, "no such user"),
            thrown: ("done", 0, ""),
            waiting: ("queued", 0, ""),
        }
        assert found[done]["submitted_at"] <= found[done]["started_at"] <= found[done]["finished_at"]
        assert {entry["handle"].encode() for entry in entries(store, "--state", "failed", "--since", "1h")} == {failed}
        application.silence()


def test_help_teaches() -> None:
    answer = run("memory", "--help")
    assert answer.returncode == 0
    for word in ("--function", "--state", "--since", "--until", "--handle", "--limit", "--json", "Examples"):
        assert word in answer.stdout


def test_large_result_of_one_job_is_whole_in_json(store: Path) -> None:
    made = SqliteStore(store)
    made.open()
    batch = contract.Batch()
    batch.finished = [record(90, b"large", JobState.DONE, NOON)._replace(result=b"x" * 100_000)]
    made.commit(batch)
    made.close(91)
    (entry,) = entries(store, "--handle", "H:lap:90")
    assert (len(entry["result"]), entry["result_size"], entry["result_kept"]) == (100_000, 100_000, 100_000)
    (entry,) = entries(store, "--function", "large")
    assert (len(entry["result"]), entry["result_size"], entry["result_kept"]) == (65_536, 100_000, 100_000)
