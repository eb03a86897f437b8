"""`geartrain submit`: payloads, results and errors."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.cli.conftest import Geartrain, run
from tests.support import process, serving
from tests.support.gearman_peer import Kind, worker

Work = Callable[..., process.Process]

CODE_NO_SERVER = 5

CODE_TIMED_OUT = 6


def test_a_background_job_prints_its_handle_and_waits_for_a_worker(
    server: serving.ServerProcess, geartrain: Geartrain
) -> None:
    handle = geartrain("submit", "later", "hello").out.strip()
    with worker(server.port, b"later") as peer:
        assert peer.grab().handle == handle


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


def test_patience(geartrain: Geartrain) -> None:
    geartrain("submit", "nobody", "--wait", "--patience", "50ms", code=CODE_TIMED_OUT)


def test_submit_and_wait_over_every_protocol(geartrain: Geartrain, work: Work, url: str) -> None:
    work("up", "--", "tr", "a-z", "A-Z")
    geartrain("submit", "up", "--wait")  # the worker is connected: Periodic's clients do not wait for one
    assert run(url, "submit", "up", "abc", "--wait").out == b"ABC"


def test_no_server_has_its_own_exit_code() -> None:
    outcome = run("gearman://127.0.0.1:1", "submit", "f", code=CODE_NO_SERVER)
    assert "127.0.0.1:1" in outcome.err


def test_background_jobs_over_memodb_are_refused(server: serving.ServerProcess) -> None:
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


def test_json_of_a_result_that_is_not_text(geartrain: Geartrain, work: Work) -> None:
    work("binary", "--", "printf", "\\377")
    outcome = geartrain("submit", "binary", "--wait", "--json")
    assert json.loads(outcome.out)["result"] == {"base64": "/w=="}
