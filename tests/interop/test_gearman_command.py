"""The `gearman` command of gearman-tools as client and as worker: libgearman, as most of the world uses it."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.interop import libraries
from tests.interop.peer import Dial, Spawn
from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until

pytestmark = pytest.mark.peer("gearman")

Gearman = Callable[..., subprocess.CompletedProcess[bytes]]
REVERSE = (sys.executable, "-c", libraries.REVERSE)


@pytest.fixture
def command(target: serving.ServerProcess) -> list[str]:
    return ["gearman", "-h", serving.HOST, "-p", str(target.port)]


@pytest.fixture
def gearman(command: list[str]) -> Gearman:
    """Runs the client to its end."""

    def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*command, *arguments], input=stdin, capture_output=True, timeout=process.PATIENCE)

    return run


@pytest.fixture
def worker(spawn: Spawn, command: list[str]) -> Callable[..., process.Process]:
    """Starts `gearman -w` with more arguments."""
    return lambda *arguments: spawn(*command, "-w", *arguments)


Work = Callable[..., process.Process]


def test_payload_from_stdin(gearman: Gearman, worker: Work, function: str) -> None:
    worker("-f", function, "--", *REVERSE)
    ran = gearman("-f", function, stdin=b"hello\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"\nolleh", b"")


def test_every_argument_is_a_job(gearman: Gearman, worker: Work, function: str) -> None:
    worker("-f", function, "--", *REVERSE)
    assert gearman("-f", function, "one", "two").stdout == b"enoowt"


def test_n_makes_every_line_a_job_with_its_line_end(gearman: Gearman, worker: Work, function: str) -> None:
    worker("-f", function, "--", *REVERSE)
    assert gearman("-f", function, "-n", stdin=b"ab\ncd\n").stdout == b"\nba\ndc"


def test_capital_n_makes_every_line_a_job_without_it(gearman: Gearman, worker: Work, function: str) -> None:
    worker("-f", function, "--", *REVERSE)
    assert gearman("-f", function, "-N", stdin=b"ab\ncd\n").stdout == b"badc"


def test_p_puts_the_function_before_each_result(gearman: Gearman, worker: Work, function: str) -> None:
    worker("-f", function, "--", *REVERSE)
    expected = f"{function}: ba{function}: dc".encode()
    assert gearman("-f", function, "-P", "-N", stdin=b"ab\ncd\n").stdout == expected


def test_s_sends_an_empty_payload(gearman: Gearman, dial: Dial, function: str) -> None:
    gearman("-f", function, "-b", "-s", stdin=b"unread")
    assert dial().register(function.encode()).grab().data == b""


def test_one_client_asks_several_functions(gearman: Gearman, worker: Work, function: str) -> None:
    worker("-f", f"{function}-reverse", "--", *REVERSE)
    worker("-f", f"{function}-same", "cat")
    ran = gearman("-f", f"{function}-reverse", "-f", f"{function}-same", "word")
    assert sorted([ran.stdout[:4], ran.stdout[4:]]) == [b"drow", b"word"]


def test_one_worker_offers_several_functions(gearman: Gearman, worker: Work, function: str) -> None:
    worker("-f", f"{function}-one", "-f", f"{function}-two", "--", *REVERSE)
    assert gearman("-f", f"{function}-one", "ab").stdout == b"ba"
    assert gearman("-f", f"{function}-two", "cd").stdout == b"dc"


def test_many_jobs_and_several_workers(gearman: Gearman, worker: Work, function: str) -> None:
    for _ in range(3):
        worker("-f", function, "cat")
    lines = [b"%d\n" % number for number in range(300)]
    ran = gearman("-f", function, "-n", stdin=b"".join(lines))
    assert sorted(ran.stdout.splitlines(keepends=True)) == sorted(lines)


def test_background_says_nothing_unless_asked(gearman: Gearman, dial: Dial, function: str) -> None:
    assert gearman("-f", function, "-b", "first").stdout == b""
    said = gearman("-f", function, "-b", "-v", "second").stdout
    peer = dial().register(function.encode())
    assert peer.grab().data == b"first"
    assert said == b"Task created: %s\n" % peer.grab().handle


@pytest.mark.parametrize("flags", [(), ("-b",)], ids=["foreground", "background"])
def test_priorities(spawn: Spawn, command: list[str], dial: Dial, function: str, flags: tuple[str, ...]) -> None:
    admin = dial()
    for count, (flag, payload) in enumerate((("-L", "low"), ("-v", "normal"), ("-I", "high")), 1):
        spawn(*command, "-f", function, flag, *flags, payload)
        queued = [function.encode(), b"%d" % count, b"0", b"0"]
        until(lambda queued=queued: queued in admin.listing("status"), "the job is queued")  # type: ignore[misc]
    peer = dial().register(function.encode())
    assert [peer.grab().data for _ in range(3)] == [b"high", b"normal", b"low"]


def test_u_sets_the_unique_key(gearman: Gearman, dial: Dial, function: str) -> None:
    gearman("-f", function, "-b", "-u", "the-key", "first")
    gearman("-f", function, "-b", "-u", "the-key", "second")
    peer = dial().register(function.encode())
    job = peer.grab(Kind.GRAB_JOB_ALL)
    assert (job.unique, job.data) == (b"the-key", b"first")
    assert peer.take() is None


def test_unique_key_of_number_sign_is_made_from_the_payload(gearman: Gearman, dial: Dial, function: str) -> None:
    """The library hashes it, so equal payloads are one job and others are not."""
    for payload in ("same", "same", "different"):
        gearman("-f", function, "-b", "-u", "#", payload)
    peer = dial().register(function.encode())
    assert peer.grab().data == b"same"
    assert peer.grab().data == b"different"
    assert peer.take() is None


def test_progress_is_shown(spawn: Spawn, command: list[str], dial: Dial, function: str) -> None:
    peer = dial().register(function.encode())
    client = spawn(*command, "-f", function, "go")
    handle = peer.grab().handle
    peer.send(Kind.WORK_STATUS, handle, b"1", b"4")
    peer.send(Kind.WORK_DATA, handle, b"part\n")
    peer.send(Kind.WORK_WARNING, handle, b"careful\n")
    peer.send(Kind.WORK_COMPLETE, handle, b"whole\n")
    assert client.wait() == 0
    assert sorted(client.lines) == ["25% Complete", "part", "whole"]
    assert client.stderr == "careful\n"


def test_failure_is_an_exit_code(gearman: Gearman, worker: Work, function: str) -> None:
    """And the worker whose command failed goes on."""
    worker("-f", function, "false")
    for _ in range(2):
        ran = gearman("-f", function, "go")
        assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b"Job failed\n")


def test_timeout_of_a_client_that_nobody_serves(gearman: Gearman, function: str) -> None:
    assert b"timeout reached" in gearman("-f", function, "-t", "100", "hello").stderr


def test_worker_sends_each_line_of_its_command_on_the_way(worker: Work, client: Peer, function: str) -> None:
    worker("-f", function, "-n", "--", "printf", r"one\n")
    handle = client.submit(function.encode())
    client.expect(Kind.WORK_DATA, handle, b"one\n")
    client.expect(Kind.WORK_COMPLETE, handle, b"")


def test_worker_strips_the_line_end_if_asked(worker: Work, client: Peer, function: str) -> None:
    worker("-f", function, "-N", "--", "printf", r"one\n")
    handle = client.submit(function.encode())
    client.expect(Kind.WORK_DATA, handle, b"one")
    client.expect(Kind.WORK_COMPLETE, handle, b"")


def test_c_ends_a_worker_after_so_many_jobs(worker: Work, client: Peer, function: str) -> None:
    started = worker("-f", function, "-c", "2", "cat")
    for payload in (b"one", b"two"):
        client.expect(Kind.WORK_COMPLETE, client.submit(function.encode(), b"", payload), payload)
    assert started.wait() == 0
    left = client.submit(function.encode(), b"", b"three")
    assert client.status(left) == (1, 0, 0, 0)


def test_worker_without_a_command_prints_the_payload(worker: Work, client: Peer, function: str) -> None:
    started = worker("-f", function, "-c", "1")
    client.expect(Kind.WORK_COMPLETE, client.submit(function.encode(), b"", b"to the screen"), b"")
    assert started.wait() == 0
    assert started.lines == ["to the screen"]


@pytest.fixture
def client(dial: Dial) -> Peer:
    return dial()
