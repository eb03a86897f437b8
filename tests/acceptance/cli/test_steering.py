"""The verbs that see into a server and steer it."""

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import Geartrain, run
from tests.support import process, serving
from tests.support.gearman_peer import worker

CODE_NOT_FOUND = 4


def functions(geartrain: Geartrain, name: str) -> dict[str, object]:
    (found,) = [f for f in geartrain("status", "--json").json["functions"] if f["name"] == name]
    return found  # type: ignore[no-any-return]


def test_status_shows_queues_and_workers(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    geartrain("submit", "mail")
    with worker(server.port, b"mail", b"print"):
        found = functions(geartrain, "mail")
        assert (found["queued"], found["workers"]) == (1, 1)
        assert "mail" in geartrain("status").text
        assert "mail" not in geartrain("status", "print").text


def test_every_operator_verb_works_over_every_protocol(geartrain: Geartrain, url: str) -> None:
    handle = geartrain("submit", "asked", "payload").text.strip()
    assert "asked" in run(url, "status").text
    assert "asked" in run(url, "top", "--once").text
    assert handle in run(url, "jobs", "--function", "asked").text
    assert run(url, "show", handle, "--payload").out == b"payload"
    assert run(url, "workers", "nobody").text == "no workers\n"
    assert run(url, "pause", "asked").text == "asked paused\n"
    assert run(url, "resume", "asked").text == "asked resumed\n"
    assert run(url, "cancel", handle).text == f"{handle} cancelled\n"
    run(url, "retry", handle, code=CODE_NOT_FOUND)
    run(url, "delete", handle, code=CODE_NOT_FOUND)


def test_every_cron_verb_works_over_every_protocol(geartrain: Geartrain, url: str) -> None:
    assert "asked" in run(url, "cron", "add", "ask", "0 3 * * *", "asked", "--json").text
    assert "ask" in run(url, "cron", "list").text
    handle = run(url, "cron", "run", "ask").text.strip()
    assert run(url, "cron", "pause", "ask").text == "ask paused\n"
    assert run(url, "cron", "resume", "ask").text == "ask resumed\n"
    assert run(url, "cron", "remove", "ask").text == "ask removed\n"
    geartrain("cancel", handle)


@pytest.mark.parametrize("verb", [["status"], ["workers"], ["jobs"], ["top", "--once"], ["cron", "list"]])
def test_several_servers(server: serving.ServerProcess, verb: list[str]) -> None:
    run(f"gearman://127.0.0.1:1,{server.url}", *verb)


def test_workers_are_listed_with_what_they_run(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    handle = geartrain("submit", "watched").text.strip()
    with worker(server.port, b"watched") as peer:
        peer.grab()
        (found,) = geartrain("workers", "watched", "--json").json_lines
        assert (found["door"], found["running"]) == ("gearman", [handle])
        assert handle in geartrain("workers", "watched").text


def test_jobs_by_state_and_function(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    waiting = [geartrain("submit", "listed").text.strip() for _ in range(2)]
    later = geartrain("submit", "listed", "--delay", "1h").text.strip()
    with worker(server.port, b"listed") as peer:
        peer.grab()

        def handles(*words: str) -> list[str]:
            return sorted(
                job["handle"] for job in geartrain("jobs", "--function", "listed", "--json", *words).json_lines
            )

        assert handles() == sorted([*waiting, later])
        assert handles("--state", "scheduled") == [later]
        assert handles("--state", "running") == [waiting[0]]
        assert handles("--state", "queued") == [waiting[1]]
        assert handles("--state", "dead") == []


def test_show_tells_a_jobs_story(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    handle = geartrain("submit", "story", "once upon a time", "--unique", "tale").text.strip()
    page = geartrain("show", handle).text
    assert "once upon a time" in page
    assert "tale" in page
    assert geartrain("show", handle, "--payload").out == b"once upon a time"


def test_show_of_no_job(geartrain: Geartrain) -> None:
    geartrain("show", "H:nowhere:1", code=CODE_NOT_FOUND)


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
        run(url, "retry", handles[1], code=CODE_NOT_FOUND)


def test_a_paused_function_hands_out_nothing_until_it_is_resumed(
    server: serving.ServerProcess, geartrain: Geartrain
) -> None:
    geartrain("pause", "halted")
    handle = geartrain("submit", "halted").out.strip()
    assert functions(geartrain, "halted")["paused"] is True
    with worker(server.port, b"halted") as peer:
        assert peer.take() is None
        geartrain("resume", "halted")
        assert peer.grab().handle == handle


def test_a_schedule_from_its_making_to_its_end(geartrain: Geartrain) -> None:
    geartrain("cron", "add", "nightly", "0 3 * * *", "report", "payload", "--timezone", "Europe/Berlin")
    (cron,) = geartrain("cron", "list", "--json").json_lines
    assert (cron["name"], cron["expression"], cron["timezone"]) == ("nightly", "0 3 * * *", "Europe/Berlin")
    assert "nightly" in geartrain("cron", "list").text
    handle = geartrain("cron", "run", "nightly").text.strip()
    assert geartrain("show", handle, "--payload").out == b"payload"
    geartrain("cron", "remove", "nightly")
    assert geartrain("cron", "list", "--json").out == b""
    geartrain("cron", "remove", "nightly", code=CODE_NOT_FOUND)


def test_a_cron_expression_that_makes_no_sense(geartrain: Geartrain) -> None:
    assert "61" in geartrain("cron", "add", "bad", "61 * * * *", "report", code=1).err


def test_top_once_is_plain_text(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    geartrain("submit", "topped")
    text = geartrain("top", "--once").text
    assert "topped" in text
    assert "\x1b" not in text


def test_colours_are_for_terminals(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    geartrain("submit", "colourful")
    words = [str(serving.installed_command()), "jobs", "--function", "colourful", "--server", server.url]
    ours, theirs = pty.openpty()
    environment = {**process.clean_environment(Path("/nonexistent")), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as child:
        os.close(theirs)
        seen = b""
        while b"queued" not in seen:
            assert select.select([ours], [], [], process.PATIENCE)[0]
            seen += os.read(ours, 65536)
        child.wait(process.PATIENCE)
    os.close(ours)
    assert b"\x1b[33mqueued" in seen


def test_a_real_gearmand_is_asked_in_its_own_words() -> None:
    with serving.gearmand() as theirs, worker(theirs.port, b"native"):
        (found,) = run(theirs.url, "status", "--json").json["functions"]
        assert (found["name"], found["workers"]) == ("native", 1)
        assert "native" in run(theirs.url, "workers").text


def test_completion_is_offered(geartrain: Geartrain) -> None:
    assert "--install-completion" in geartrain("--help").text
