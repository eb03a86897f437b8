"""The verbs that show: status, workers, jobs, show, top."""

import os
import pty
import select
import subprocess
from pathlib import Path

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


def test_show_prints_a_job(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    handle = geartrain("submit", "story", "once upon a time", "--unique", "tale").text.strip()
    page = geartrain("show", handle).text
    assert "once upon a time" in page
    assert "tale" in page
    assert geartrain("show", handle, "--payload").out == b"once upon a time"


def test_show_of_an_unknown_job(geartrain: Geartrain) -> None:
    geartrain("show", "H:nowhere:1", code=CODE_NOT_FOUND)


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


def test_status_and_workers_of_a_real_gearmand() -> None:
    with serving.gearmand() as theirs, worker(theirs.port, b"native"):
        (found,) = run(theirs.url, "status", "--json").json["functions"]
        assert (found["name"], found["workers"]) == ("native", 1)
        assert "native" in run(theirs.url, "workers").text


def test_completion_is_offered(geartrain: Geartrain) -> None:
    assert "--install-completion" in geartrain("--help").text
