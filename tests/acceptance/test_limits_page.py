"""docs/limits.md: its commands work as they are written, and a stock Gearman client has partitions."""

import shlex
import subprocess
from collections.abc import Iterator

import pytest

from tests.support import pages, process, serving
from tests.support.gearman_peer import Kind, worker
from tests.support.http_peer import Peer


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listen = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0")
    with serving.serve("--store", "memory", *listen) as server:
        yield server


def run(server: serving.ServerProcess, line: str) -> str:
    """A line of a console session, at this server."""
    program, *words = shlex.split(line)
    command = {
        "geartrain": [str(serving.installed_command()), *words, "--server", server.url],
        "gearman": ["gearman", "-h", serving.HOST, "-p", str(server.port), *words],
    }[program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=process.PATIENCE, check=True)
    return ran.stdout


@pytest.mark.peer("gearman")
def test_the_sessions(server: serving.ServerProcess) -> None:
    for block in pages.blocks("limits.md", "console"):
        for part in block.text.split("$ ")[1:]:
            line, _, output = part.partition("\n")
            assert run(server, line) == output
    peer = Peer(server.urls[1])
    limits = peer.get("/functions/mail")["running_limits"]
    assert limits == {
        "max_running": None,
        "max_running_per_partition": 2,
        "rate": "100/m",
        "burst": 20,
        "rate_per_partition": "5/s",
        "burst_per_partition": 10,
        "partition_from_unique": ":",
    }
    [job] = peer.get("/jobs?function=mail")["items"]
    assert (job["unique"], job["partition"]) == ("acme:17", "acme")


@pytest.mark.peer("gearman")
def test_ten_jobs_do_not_wait_for_a_hundred(server: serving.ServerProcess) -> None:
    """With nothing but the `gearman` command and a worker of Gearman."""
    run(server, "geartrain limit report --partition-from-unique :")
    for tenant, count in (("large", 100), ("small", 10)):
        for number in range(count):
            run(server, f"gearman -b -f report -u {tenant}:{number} {tenant}{number}")
    with worker(server.port, b"report") as peer:
        turns = []
        for _ in range(20):
            job = peer.grab()
            turns.append(job.data)
            peer.send(Kind.WORK_COMPLETE, job.handle, b"")
    assert turns[::2] == [b"large%d" % number for number in range(10)]
    assert turns[1::2] == [b"small%d" % number for number in range(10)]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--rate often", "rate: 'often' is not a rate such as 5/s, 100/m, 1000/h or 10/d"),
        ("--rate 0/s", "a rate must be 1 to 1,000,000 jobs"),
        ("--burst 5", "burst needs a rate"),
        ("--burst 0", "burst must be at least 1"),
        ("--partition-from-unique ''", "1 to 16 characters"),
    ],
)
def test_what_makes_no_sense_is_refused(server: serving.ServerProcess, options: str, error: str) -> None:
    words = shlex.split(options)
    command = [str(serving.installed_command()), "limit", "refused", *words, "--server", server.url]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=process.PATIENCE)
    assert ran.returncode != 0
    assert error in " ".join(ran.stderr.split())
    assert Peer(server.urls[1]).call("GET", "/functions/refused").status == 404


def test_the_commands_say_what_a_job_waits_for(server: serving.ServerProcess) -> None:
    run(server, "geartrain limit busy --max-running 1")
    peer = Peer(server.urls[1])
    peer.submit("busy", "first")
    second = peer.submit("busy", "second", partition="acme")["handle"]
    with worker(server.port, b"busy") as taker:
        taker.grab()
        reason = "one of 1 running jobs to end (max_running)"
        assert f"waits for {reason}" in run(server, "geartrain jobs --function busy")
        shown = run(server, f"geartrain show {second}")
        assert reason in shown
        assert "acme" in shown
        [line] = [line for line in run(server, "geartrain status busy").splitlines() if line.startswith("busy")]
        assert line.endswith(" max_running")
