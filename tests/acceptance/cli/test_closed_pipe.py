"""A reader that closes its pipe, and Ctrl-C: commands end without a traceback."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import Geartrain, run
from tests.support import process, serving

INTERRUPTED = 130


def environment(server: serving.ServerProcess) -> dict[str, str]:
    return {**process.clean_environment(Path("/nonexistent")), "GEARTRAIN_SERVER": server.url}


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["version"],
        ["status"],
        ["workers"],
        ["jobs", "--json", "--limit", "5000"],
        ["jobs", "--limit", "5000"],
        ["cancel", "--function", "f", "--dry-run"],
        ["cron", "list"],
        ["submit", "g", "--lines"],
        ["top", "--once"],
    ],
)
def test_closed_pipe(server: serving.ServerProcess, words: list[str]) -> None:
    run(server.url, "submit", "f", "--lines", stdin=b"x\n" * 3000)
    command = [str(serving.installed_command()), *words]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, env=environment(server), input=b"x\n" * 3000, stdout=writing, stderr=subprocess.PIPE, timeout=60
    )
    os.close(writing)
    assert b"Traceback" not in done.stderr, done.stderr
    assert b"BrokenPipe" not in done.stderr, done.stderr
    assert b"Exception ignored" not in done.stderr, done.stderr


def test_interrupt(server: serving.ServerProcess) -> None:
    command = [str(serving.installed_command()), "tail"]
    tail = subprocess.Popen(command, env=environment(server), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert tail.stdout is not None
    while not _has_event(server, tail):
        assert tail.poll() is None
    tail.send_signal(signal.SIGINT)
    _, errors = tail.communicate(timeout=60)
    assert (tail.returncode, errors) == (INTERRUPTED, b"")


def _has_event(server: serving.ServerProcess, tail: "subprocess.Popen[bytes]") -> bool:
    """Whether the command printed the event of a job that is submitted now: then it runs."""
    assert tail.stdout is not None
    os.set_blocking(tail.stdout.fileno(), False)
    run(server.url, "submit", "seen")
    return bool(tail.stdout.read())


def test_version(geartrain: Geartrain) -> None:
    assert geartrain("--version").text == geartrain("version").text
