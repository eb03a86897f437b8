"""`geartrain submit` and `geartrain work`, with each other and with gearman's own tools."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import Geartrain, run
from tests.support import process, serving
from tests.support.gearman_peer import Kind, worker

Work = Callable[..., process.Process]

CODE_JOB_FAILED = 3
CODE_NO_SERVER = 5
CODE_TIMED_OUT = 6


def test_a_background_job_prints_its_handle_and_waits_for_a_worker(
    server: serving.ServerProcess, geartrain: Geartrain
) -> None:
    handle = geartrain("submit", "later", "hello").out.strip()
    with worker(server.port, b"later") as peer:
        assert peer.grab().handle == handle


def test_the_result_of_a_shell_command(geartrain: Geartrain, work: Work) -> None:
    work("shout", "--", "tr", "a-z", "A-Z")
    assert geartrain("submit", "shout", "hello", "--wait").out == b"HELLO"


def test_a_payload_from_a_file_and_from_standard_input_is_kept_byte_for_byte(
    geartrain: Geartrain, work: Work, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 1000
    file = tmp_path / "payload"
    file.write_bytes(content)
    work("cat", "--", "cat")
    assert geartrain("submit", "cat", "--file", file, "--wait").out == content
    assert geartrain("submit", "cat", "-", "--wait", stdin=content).out == content


def test_one_job_per_line_and_results_in_the_order_of_the_lines(geartrain: Geartrain, work: Work) -> None:
    work("line", "--concurrency", "2", "--", "cat")
    lines = [b"line %d" % number for number in range(25)]
    assert geartrain("submit", "line", "--lines", "--wait", stdin=b"\n".join(lines)).out.splitlines() == lines


def test_handles_of_one_job_per_line_as_json(geartrain: Geartrain) -> None:
    found = geartrain("submit", "nobody-does-this", "--lines", "--json", stdin=b"a\nb\nc\n").json_lines
    assert len({job["handle"] for job in found}) == 3


def test_a_command_that_fails_fails_the_job_with_its_words(geartrain: Geartrain, work: Work) -> None:
    work("broken", "--", "sh", "-c", "echo it is broken >&2; exit 3")
    outcome = geartrain("submit", "broken", "--wait", code=CODE_JOB_FAILED)
    assert "it is broken" in outcome.err
    failed = geartrain("submit", "broken", "--wait", "--json", code=CODE_JOB_FAILED).json
    assert failed["state"] == "failed"


def test_a_command_that_does_not_exist_fails_the_job_and_not_the_worker(geartrain: Geartrain, work: Work) -> None:
    running = work("absent", "--", "/no/such/command")
    for _ in range(2):
        assert "No such file" in geartrain("submit", "absent", "--wait", code=CODE_JOB_FAILED).err
    assert running.process.poll() is None


def test_a_command_that_takes_too_long_is_killed(geartrain: Geartrain, work: Work) -> None:
    work("slow", "--timeout", "300ms", "--", "sleep", "60")
    geartrain("submit", "slow", "--wait", code=CODE_JOB_FAILED)


def test_waiting_no_longer_than_asked_for(geartrain: Geartrain) -> None:
    geartrain("submit", "nobody", "--wait", "--patience", "50ms", code=CODE_TIMED_OUT)


def test_the_command_learns_what_it_works_on(geartrain: Geartrain, work: Work) -> None:
    work("env", "--", "sh", "-c", "echo $GEARTRAIN_FUNCTION $GEARTRAIN_UNIQUE")
    assert geartrain("submit", "env", "--unique", "key", "--wait").out == b"env key\n"


def test_sigterm_lets_the_running_command_finish(geartrain: Geartrain, work: Work, tmp_path: Path) -> None:
    started, go_on = tmp_path / "started", tmp_path / "go"
    subprocess.run(["mkfifo", str(started), str(go_on)], check=True)
    running = work("patient", "--", "sh", "-c", f"echo > {started}; cat {go_on}; echo done")
    handle = geartrain("submit", "patient").text.strip()
    started.read_text()  # until the command writes to it
    running.process.send_signal(signal.SIGTERM)
    go_on.write_text("")
    assert running.wait() == 0
    assert geartrain("show", handle, "--json").json["result"] == "done\n"


@pytest.mark.parametrize("door", range(5))
def test_the_shell_worker_works_by_every_protocol(
    server: serving.ServerProcess, geartrain: Geartrain, work: Work, door: int
) -> None:
    work(f"rev{door}", "--", "rev", url=server.urls[door])
    assert geartrain("submit", f"rev{door}", "abc", "--wait").out.strip() == b"cba"


@pytest.mark.parametrize("door", range(5))
def test_submitting_and_waiting_by_every_protocol(server: serving.ServerProcess, work: Work, door: int) -> None:
    work(f"up{door}", "--", "tr", "a-z", "A-Z")
    run(server.url, "submit", f"up{door}", "--wait")  # the worker is there: Periodic's clients do not wait for one
    assert run(server.urls[door], "submit", f"up{door}", "abc", "--wait").out == b"ABC"


def test_gearmans_own_client_is_served_by_the_shell_worker(server: serving.ServerProcess, work: Work) -> None:
    work("native", "--", "tr", "a-z", "A-Z")
    words = ["gearman", "-h", "127.0.0.1", "-p", str(server.port), "-f", "native", "hello"]
    assert subprocess.run(words, capture_output=True, timeout=30).stdout == b"HELLO"


def test_no_server_is_an_error_of_its_own() -> None:
    outcome = run("gearman://127.0.0.1:1", "submit", "f", code=CODE_NO_SERVER)
    assert "127.0.0.1:1" in outcome.err


def test_memodb_has_no_background_jobs_and_says_so(server: serving.ServerProcess) -> None:
    memodb = next(url for url in server.urls if url.startswith("memodb"))
    outcome = run(memodb, "submit", "f", code=1)
    assert "background" in outcome.err


def test_progress_data_and_warnings_of_a_worker_are_shown(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    import threading

    def answer() -> None:
        with worker(server.port, b"chatty") as peer:
            handle = peer.grab().handle
            peer.send(Kind.WORK_DATA, handle, b"part ")
            peer.send(Kind.WORK_WARNING, handle, b"careful")
            peer.send(Kind.WORK_COMPLETE, handle, b"end")

    thread = threading.Thread(target=answer)
    thread.start()
    outcome = geartrain("submit", "chatty", "--wait")
    thread.join()
    assert outcome.out == b"part end"
    assert "careful" in outcome.err


def test_json_of_a_result_that_is_no_text(geartrain: Geartrain, work: Work) -> None:
    work("binary", "--", "printf", "\\377")
    outcome = geartrain("submit", "binary", "--wait", "--json")
    assert json.loads(outcome.out)["result"] == {"base64": "/w=="}


SHOP = """
from geartrain import App

app = App("shop", {url!r})


@app.task
async def greet(name: str) -> str:
    return "Hello, " + name


if __name__ == "__main__":
    print(greet.call_sync("Ada"))
"""


@pytest.mark.parametrize("named", ["its own", "named"])
def test_the_tasks_of_an_app(server: serving.ServerProcess, tmp_path: Path, named: str) -> None:
    """By the server that the App names, or by the one that the command names."""
    (tmp_path / "shop.py").write_text(SHOP.format(url=server.url))
    words = ["--server", server.url] if named == "named" else []
    worker_process = process.Process([str(serving.installed_command()), "work", "shop:app", *words], tmp_path)
    try:
        done = subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, timeout=40)
        assert done.stdout == b"Hello, Ada\n", done.stderr.decode()
    finally:
        worker_process.process.terminate()
        assert worker_process.wait() == 0
        assert "Traceback" not in worker_process.stderr
