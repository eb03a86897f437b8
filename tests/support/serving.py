"""Servers as real processes: the installed `geartrain` command, and Debian's gearmand in the same shape.

    with serving.serve("--store", "memory", "--listen", "gearman://127.0.0.1:0") as server:
        socket.create_connection(("127.0.0.1", server.port))

Leaving the block stops the server and fails the test if it did not stop cleanly. Nothing here sleeps: a start
is over when the server says so on its standard output, or (gearmand, which says nothing) when it answers.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support import process

HOST = "127.0.0.1"
# Below Linux' range for outgoing connections: one of those could take a port before gearmand binds it.
PORTS = range(20000, 32000)
LISTENING = "listening "


class ServerProcess(process.Process):
    """A running server. Its files live in `home`, which goes away with it."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        super().__init__(command, home)
        self.urls: list[str] = []  # of its open doors, in the order it opened them

    @property
    def url(self) -> str:
        """The first door's."""
        return self.urls[0]

    @property
    def port(self) -> int:
        """The first door's."""
        return int(self.url.rpartition(":")[2])

    @property
    def address(self) -> str:
        """The first door's `host:port`, as most Gearman libraries want it."""
        return f"{HOST}:{self.port}"

    def wait_for_doors(self, count: int) -> None:
        """Fill `urls` from the one line that the server prints for each open door."""
        self.wait_until(lambda lines: len(_open_doors(lines)) >= count, f"{count} open door(s)")
        self.urls = _open_doors(self.lines)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        """SIGTERM, and insist on a clean end: exit code 0 and no traceback. A second call does nothing."""
        if self.closed:
            return
        self.process.terminate()
        try:
            code = self.wait()
        except AssertionError:
            self.kill()
            raise
        if code != 0:
            raise AssertionError(f"it did not stop cleanly\n{self.account()}")
        self.check_stderr()

    def check_stderr(self) -> None:
        """A server that survives its own bug is still a failed test."""
        if "Traceback (most recent call last)" in self.stderr:
            raise AssertionError(f"a traceback on stderr\n{self.account()}")


def _open_doors(lines: list[str]) -> list[str]:
    return [line.removeprefix(LISTENING) for line in lines if line.startswith(LISTENING)]


def run_command(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the installed command to its end, in a folder that is also its home."""
    return subprocess.run(
        [str(installed_command()), *words],
        cwd=folder,
        env=process.clean_environment(folder),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


def installed_command() -> Path:
    """The `geartrain` script beside the interpreter that runs the tests."""
    command = Path(sys.executable).parent / "geartrain"
    if not command.exists():
        raise AssertionError(f"{command} is missing: install the package first (`make test` does)")
    return command


@contextlib.contextmanager
def serve(*arguments: str, doors: int | None = None, under: Sequence[str] = ()) -> Iterator[ServerProcess]:
    """`geartrain serve` with these arguments, once all its doors are open.

    The doors are counted from the arguments; say `doors` where a settings file opens them. `under` is a command that
    runs the server, such as strace.
    """
    with _running([*under, str(installed_command()), "serve", *arguments]) as server:
        server.wait_for_doors(doors or _doors_of(arguments))
        yield server


def _doors_of(arguments: Sequence[str]) -> int:
    """How many doors these arguments open: one for each `--listen`, and one for the other servers of a cluster."""
    listens = sum(argument.partition("=")[0] == "--listen" for argument in arguments)
    shared = any(argument.removeprefix("--store=").startswith("postgresql://") for argument in arguments)
    own = shared and not any("peer://" in argument or "peers://" in argument for argument in arguments)
    return max(listens, 1) + own


@contextlib.contextmanager
def gearmand(*options: str, port: int = 0) -> Iterator[ServerProcess]:
    """Debian's gearmand on this port or a free one, once it answers there."""
    account = "no free port was found"
    for candidate in [port] if port else filter(is_free, random.sample(PORTS, 5)):
        with _running(_gearmand_command(candidate, options)) as server:
            if _answers(server, candidate):
                server.urls = [f"gearman://{HOST}:{candidate}"]
                yield server
                return
            server.kill()
            account = server.account()
    raise AssertionError(f"gearmand did not start\n{account}")


def _gearmand_command(port: int, options: Sequence[str]) -> list[str]:
    program = shutil.which("gearmand", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert program is not None, "gearmand is not installed"
    own = [f"--listen={HOST}", f"--port={port}", "--log-file=stderr", "--pid-file=gearmand.pid"]
    return [program, *own, "--config-file=/dev/null", *options]


@contextlib.contextmanager
def _running(command: Sequence[str]) -> Iterator[ServerProcess]:
    """The process, for as long as the block runs; a failure in the block is not hidden by a failing stop."""
    with tempfile.TemporaryDirectory(prefix="geartrain-test-") as folder:
        server = ServerProcess(command, Path(folder))
        try:
            yield server
        except BaseException:
            server.kill()
            print(server.account(), file=sys.stderr)  # pytest shows it with the failure
            raise
        server.stop()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _answers(server: ServerProcess, port: int) -> bool:
    """Whether this gearmand, and no other server that took the port, comes to answer on it."""
    deadline = time.monotonic() + process.PATIENCE
    while time.monotonic() < deadline and server.process.poll() is None:
        if _asked_for_pid(port) == b"OK %d\n" % server.pid:
            return True
        # gearmand gives no other sign of life: ask again, without spinning.
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(0.02)
    return False


def _asked_for_pid(port: int) -> bytes:
    try:
        with socket.create_connection((HOST, port), timeout=1) as admin, admin.makefile("rb") as answers:
            admin.sendall(b"getpid\n")
            return answers.readline()
    except OSError:
        return b""
