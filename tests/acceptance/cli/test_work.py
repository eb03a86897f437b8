"""`geartrain work`: a command for each job, and the tasks of an App."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import Geartrain
from tests.support import process, serving

Work = Callable[..., process.Process]

CODE_JOB_FAILED = 3

SHOP = """
from geartrain import App

app = App("shop", {url!r})


@app.task
async def greet(name: str) -> str:
    return "Hello, " + name


if __name__ == "__main__":
    print(greet.call_sync("Ada"))
"""


def test_the_result_of_a_shell_command(geartrain: Geartrain, work: Work) -> None:
    work("shout", "--", "tr", "a-z", "A-Z")
    assert geartrain("submit", "shout", "hello", "--wait").out == b"HELLO"


def test_a_command_that_fails_fails_the_job_with_its_stderr(geartrain: Geartrain, work: Work) -> None:
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


def test_a_share_of_the_slots_for_each_function(geartrain: Geartrain, work: Work, tmp_path: Path) -> None:
    """The slow function fills its half of two slots, and the other one still runs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = f'test "$GEARTRAIN_FUNCTION" = quick || cat {pipe}; echo done'
    work("slow", "quick", "--concurrency", "2", "--max-share", "0.5", "--", "sh", "-c", command)
    for _ in range(2):
        geartrain("submit", "slow")
    with pipe.open("w"):  # opens when a slow job reads
        assert geartrain("submit", "quick", "--wait").out == b"done\n"
        pipe.unlink()  # so that the second one does not wait for a writer
    geartrain("work", "slow", "--max-share", "0", "--", "true", code=2)


def test_the_environment_of_the_command(geartrain: Geartrain, work: Work) -> None:
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


def test_a_command_works_over_every_protocol(geartrain: Geartrain, work: Work, url: str) -> None:
    function = f"rev-{url.partition(':')[0]}"
    work(function, "--", "rev", url=url)
    assert geartrain("submit", function, "abc", "--wait").out.strip() == b"cba"


def test_a_command_serves_the_gearman_client(server: serving.ServerProcess, work: Work) -> None:
    work("native", "--", "tr", "a-z", "A-Z")
    words = ["gearman", "-h", "127.0.0.1", "-p", str(server.port), "-f", "native", "hello"]
    assert subprocess.run(words, capture_output=True, timeout=30).stdout == b"HELLO"


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
