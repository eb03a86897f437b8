"""The verbs that act on jobs, functions and schedules."""

import time
from pathlib import Path

from tests.acceptance.cli.conftest import Geartrain, run
from tests.support import process, serving
from tests.support.gearman_peer import worker

CODE_FAILED = 1
CODE_NOT_FOUND = 4


def functions(geartrain: Geartrain, name: str) -> dict[str, object]:
    (found,) = [f for f in geartrain("status", "--json").json["functions"] if f["name"] == name]
    return found  # type: ignore[no-any-return]


def test_cancel_ends_a_waiting_job(geartrain: Geartrain) -> None:
    handle = geartrain("submit", "unwanted").text.strip()
    geartrain("cancel", handle)
    assert geartrain("show", handle, "--json").json["state"] == "cancelled"
    geartrain("cancel", handle, code=CODE_NOT_FOUND)


def test_a_dead_job_is_retried_and_another_deleted(tmp_path: Path) -> None:
    with serving.serve("--listen", "gearman://127.0.0.1:0", "--max-attempts", "1") as server:
        url = server.url
        handles = [run(url, "submit", "fatal").text.strip() for _ in range(2)]
        for _ in handles:
            with worker(server.port, b"fatal") as peer:
                peer.grab()
        deadline = time.monotonic() + process.PATIENCE
        while len(dead := run(url, "jobs", "--state", "dead", "--json").json_lines) < 2:
            assert time.monotonic() < deadline
        assert all(job["reason"] for job in dead)
        run(url, "retry", handles[0])
        run(url, "delete", handles[1])
        assert run(url, "jobs", "--state", "dead", "--json").out == b""
        assert run(url, "show", handles[0], "--json").json["state"] == "queued"
        run(url, "retry", handles[1], code=CODE_FAILED)


def test_pause_and_resume(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    geartrain("pause", "halted")
    handle = geartrain("submit", "halted").out.strip()
    assert functions(geartrain, "halted")["paused"] is True
    with worker(server.port, b"halted") as peer:
        assert peer.take() is None
        geartrain("resume", "halted")
        assert peer.grab().handle == handle


def test_a_schedule_from_creation_to_removal(geartrain: Geartrain) -> None:
    geartrain("cron", "add", "nightly", "0 3 * * *", "report", "payload", "--timezone", "Europe/Berlin")
    (cron,) = geartrain("cron", "list", "--json").json_lines
    assert (cron["name"], cron["expression"], cron["timezone"]) == ("nightly", "0 3 * * *", "Europe/Berlin")
    assert "nightly" in geartrain("cron", "list").text
    handle = geartrain("cron", "run", "nightly").text.strip()
    assert geartrain("show", handle, "--payload").out == b"payload"
    geartrain("cron", "remove", "nightly")
    assert geartrain("cron", "list", "--json").out == b""
    geartrain("cron", "remove", "nightly", code=CODE_NOT_FOUND)


def test_a_schedule_by_name_or_interval(geartrain: Geartrain) -> None:
    geartrain("cron", "add", "x", "@hourly", "f")
    geartrain("cron", "add", "often", "@every 15s", "f", "--missed", "skip")
    geartrain("cron", "add", "seconds", "*/10 * * * * *", "f", "--missed", "all")
    crons = {cron["name"]: cron for cron in geartrain("cron", "list", "--json").json_lines}
    assert {name: cron["missed"] for name, cron in crons.items()} == {"x": "once", "often": "skip", "seconds": "all"}
    assert crons["x"]["next_at"] % 3600 == 0
    assert crons["seconds"]["next_at"] % 10 == 0
    for name in crons:
        geartrain("cron", "remove", name)


def test_an_invalid_cron_expression(geartrain: Geartrain) -> None:
    assert "61" in geartrain("cron", "add", "bad", "61 * * * *", "report", code=1).err
