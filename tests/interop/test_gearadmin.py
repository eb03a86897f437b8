"""Every command of `gearadmin`, as its own --help lists them."""

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer

pytestmark = pytest.mark.peer("gearadmin")

Gearadmin = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def target(own_target: serving.ServerProcess) -> serving.ServerProcess:
    """A server for each test: these commands list everything on it."""
    return own_target


@pytest.fixture
def gearadmin(target: serving.ServerProcess) -> Gearadmin:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["gearadmin", "--host", serving.HOST, "--port", str(target.port), *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=process.PATIENCE
        )

    return run


def lines(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """Of a listing, without its final dot."""
    assert (ran.returncode, ran.stderr) == (0, "")
    *listed, dot = ran.stdout.splitlines()
    assert dot == "."
    return listed


@pytest.fixture
def worker(target: serving.ServerProcess) -> Iterator[Peer]:
    """A named worker of two functions."""
    with Peer(target.port).register(b"one", b"two") as worker:
        worker.send(Kind.SET_CLIENT_ID, b"the-worker").silence()
        yield worker


@pytest.fixture
def client(target: serving.ServerProcess) -> Iterator[Peer]:
    with Peer(target.port) as client:
        yield client


def test_status(gearadmin: Gearadmin, worker: Peer, client: Peer) -> None:
    for _ in range(3):
        client.submit(b"one", kind=Kind.SUBMIT_JOB_BG)
    client.submit(b"nobodys", kind=Kind.SUBMIT_JOB_BG)
    worker.grab()
    assert sorted(lines(gearadmin("--status"))) == ["nobodys\t1\t0\t0", "one\t3\t1\t1", "two\t0\t0\t1"]


def test_status_of_a_server_without_functions(gearadmin: Gearadmin) -> None:
    assert lines(gearadmin("--status")) == []


def test_priority_status(gearadmin: Gearadmin, worker: Peer, client: Peer) -> None:
    for kind, count in ((Kind.SUBMIT_JOB_HIGH_BG, 3), (Kind.SUBMIT_JOB_BG, 2), (Kind.SUBMIT_JOB_LOW_BG, 1)):
        for _ in range(count):
            client.submit(b"one", kind=kind)
    assert sorted(lines(gearadmin("--priority-status"))) == ["one\t3\t2\t1\t1", "two\t0\t0\t0\t1"]


def test_workers(gearadmin: Gearadmin, worker: Peer, client: Peer) -> None:
    listed = [re.sub(r"^\d+", "FD", line) for line in lines(gearadmin("--workers"))]
    assert f"FD {serving.HOST} the-worker : two one" in listed
    # The client and the command itself: connections that are no workers are listed as well.
    assert listed.count(f"FD {serving.HOST} - :") == 2
    assert len(listed) == 3


def test_show_jobs(gearadmin: Gearadmin, worker: Peer, client: Peer) -> None:
    foreground = client.submit(b"one").decode()
    background = client.submit(b"one", kind=Kind.SUBMIT_JOB_BG).decode()
    assert sorted(lines(gearadmin("--show-jobs"))) == sorted([f"{foreground}\t0\t0\t0", f"{background}\t0\t0\t1"])


def test_show_unique_jobs(gearadmin: Gearadmin, client: Peer) -> None:
    client.submit(b"one", b"key-one", kind=Kind.SUBMIT_JOB_BG)
    client.submit(b"two", b"key-two", kind=Kind.SUBMIT_JOB_BG)
    assert sorted(lines(gearadmin("--show-unique-jobs"))) == ["key-one", "key-two"]


def test_cancel_job(gearadmin: Gearadmin, worker: Peer, client: Peer) -> None:
    handle = client.submit(b"one", kind=Kind.SUBMIT_JOB_BG)
    assert gearadmin(f"--cancel-job={handle.decode()}").stdout == "OK\n"
    assert worker.take() is None


def test_cancel_job_tells_the_client_that_waits(gearadmin: Gearadmin, client: Peer) -> None:
    handle = client.submit(b"one")
    gearadmin(f"--cancel-job={handle.decode()}")
    client.expect(Kind.WORK_FAIL, handle)


def test_cancel_unknown_job(gearadmin: Gearadmin) -> None:
    ran = gearadmin("--cancel-job=H:nowhere:1")
    assert (ran.stdout, ran.stderr.strip()) == ("", "Error: UNKNOWN_JOB")


def test_create_and_drop_function(gearadmin: Gearadmin) -> None:
    assert gearadmin("--create-function=made").stdout == "OK\n"
    assert lines(gearadmin("--status")) == ["made\t0\t0\t0"]
    assert gearadmin("--drop-function=made").stdout == "OK\n"
    assert lines(gearadmin("--status")) == []


def test_drop_unknown_function(gearadmin: Gearadmin) -> None:
    ran = gearadmin("--drop-function=never-made")
    assert (ran.stdout, ran.stderr.strip()) == ("", "Error: function not found")


def test_drop_function_of_a_worker(gearadmin: Gearadmin, worker: Peer) -> None:
    ran = gearadmin("--drop-function=one")
    complaint = "Error: there are still connected workers or executing clients"
    assert (ran.stdout, ran.stderr.strip()) == ("", complaint)
    assert "one\t0\t0\t1" in lines(gearadmin("--status"))


def test_server_version(gearadmin: Gearadmin) -> None:
    assert re.fullmatch(r"\d+\.\d+\S*\n", gearadmin("--server-version").stdout)


def test_server_verbose(gearadmin: Gearadmin) -> None:
    levels = {"FATAL", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG"}
    assert gearadmin("--server-verbose").stdout.strip() in levels


def test_getpid(gearadmin: Gearadmin, target: serving.ServerProcess) -> None:
    assert gearadmin("--getpid").stdout == f"{target.pid}\n"
