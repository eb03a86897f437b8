"""The servers that are measured, each started for itself on a free port, with its files in a folder that goes away.

A server has one core and the load has another, where there are two: then neither takes time from the other, and a
server that would use more cores is compared for what it does with one.
"""

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import memodb
from tests.support import process, redis_server, serving

CORES = sorted(os.sched_getaffinity(0))
PINNED = len(CORES) > 1
# Changed by `unpin` and `serve_on`.
SERVER_CORE, LOAD_CORE = ({CORES[0]}, {CORES[1]}) if PINNED else (set(CORES), set(CORES))
QUEUE_ENVIRONMENTS = Path(sys.prefix) / "queues"  # where bench/queues.py installs the Python queues, each by itself
STEADY = 0.02  # seconds between two looks at a server that gives no sign when it is ready


class Place(NamedTuple):
    """A server that runs."""

    urls: tuple[str, ...]
    pid: int

    @property
    def port(self) -> int:
        return int(self.urls[0].rpartition(":")[2].partition("/")[0])


class StartError(Exception):
    """A server does not accept connections, or ended."""


Start = Callable[[], contextlib.AbstractContextManager[Place]]


class Contender(NamedTuple):
    """One of those who are measured."""

    name: str
    on: str  # exactly how it runs
    start: Start | None = None  # None: a script of its own starts it
    needs: str = ""  # a peer of tools/peers.py without which it cannot be measured
    ours: bool = False


def unpin() -> None:
    """From now on, let servers and load use every core."""
    for cores in (SERVER_CORE, LOAD_CORE):
        cores.update(CORES)


def serve_on(count: int) -> None:
    """From now on, let a server use so many cores, and the load the others; if there are no others, all of them."""
    SERVER_CORE.clear()
    SERVER_CORE.update(CORES[:count])
    LOAD_CORE.clear()
    LOAD_CORE.update(CORES[count:] or CORES)


@contextlib.contextmanager
def running(start: Start) -> Iterator[Place]:
    """A contender on the servers' core; the load, which is this process, on its own."""
    with contextlib.ExitStack() as stack:
        os.sched_setaffinity(0, SERVER_CORE)
        try:
            place = stack.enter_context(start())
        finally:
            os.sched_setaffinity(0, LOAD_CORE)
        yield place


@contextlib.contextmanager
def own_core() -> Iterator[None]:
    """Afterwards, this process may use every core again."""
    try:
        yield
    finally:
        os.sched_setaffinity(0, set(CORES))


def geartrain(*doors: str, durable: bool) -> Start:
    """Ours, with these doors."""

    @contextlib.contextmanager
    def start() -> Iterator[Place]:
        listen = [word for door in doors for word in ("--listen", f"{door}://{serving.HOST}:0")]
        with tempfile.TemporaryDirectory(prefix="geartrain-bench-") as folder:
            store = f"sqlite://{folder}/jobs.db" if durable else "memory"
            with serving.serve("--store", store, *listen) as server:
                yield Place(tuple(server.urls), server.pid)

    return start


ONE_THREAD = "--threads=1"  # for gearmand's connections: that is what makes it fastest on one core


def gearmand(*options: str, threads: str = ONE_THREAD) -> Start:
    """Debian's; with `threads=""` as many as it has by default."""
    words = [word for word in (threads, "--file-descriptors=20000", "--backlog=1024", *options) if word]

    @contextlib.contextmanager
    def start() -> Iterator[Place]:
        with serving.gearmand(*words) as server:
            yield Place((server.url,), server.pid)

    return start


def redis(*options: str) -> Start:
    def words(port: int, folder: Path) -> list[str]:
        own = ["--port", str(port), "--bind", serving.HOST, "--save", "", "--maxclients", "20000"]
        return [redis_server.program("redis-server"), *own, *options]

    return _foreign("redis", words)


def beanstalkd() -> Start:
    """With its log in the folder that it runs in, and an fsync for every write."""
    return _foreign(
        "beanstalk", lambda port, folder: ["beanstalkd", "-l", serving.HOST, "-p", str(port), "-b", ".", "-f0"]
    )


def command(template: Sequence[str]) -> Start:
    """Any Gearman server, as a command line; `{port}` and `{dir}` in it become a free port and an empty folder."""

    def words(port: int, folder: Path) -> list[str]:
        return [word.replace("{port}", str(port)).replace("{dir}", str(folder)) for word in template]

    return _foreign("gearman", words)


@contextlib.contextmanager
def pynng() -> Iterator[Place]:
    with memodb.pynng() as (port, pid):
        yield Place((f"tcp://{serving.HOST}:{port}",), pid)


def processor_seconds(pid: int) -> float:
    """The processor time of a process and its children so far, to the nanosecond where the kernel tells."""
    total = _own_processor_seconds(pid)
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it may end while we look
            total += sum(processor_seconds(int(child)) for child in (thread / "children").read_text().split())
    return total


def _own_processor_seconds(pid: int) -> float:
    told = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it may end while we look
            told += int((thread / "schedstat").read_text().split()[0])
    if told:
        return told / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _foreign(scheme: str, words: Callable[[int, Path], Sequence[str]]) -> Start:
    """A server that is ready when it accepts a connection, and that is killed at the end."""

    @contextlib.contextmanager
    def start() -> Iterator[Place]:
        account = ""
        for port in random.sample(serving.PORTS, 5):
            with tempfile.TemporaryDirectory(prefix="geartrain-bench-") as folder:
                server = process.Process(words(port, Path(folder)), Path(folder))
                try:
                    if _accepts(server, port):
                        yield Place((f"{scheme}://{serving.HOST}:{port}",), server.pid)
                        return
                    account = server.account()
                except BaseException:
                    print(server.account(), file=sys.stderr)
                    raise
                finally:
                    server.kill()
        raise StartError(f"a server did not start\n{account}")

    return start


def _accepts(server: process.Process, port: int) -> bool:
    """Whether it came to accept connections; where another one has the port, it ends."""
    deadline = time.monotonic() + process.PATIENCE
    while time.monotonic() < deadline and server.process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((serving.HOST, port), 1):
            # Another server may have answered: then ours is about to end, having found its port taken.
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.process.wait(STEADY * 5)
            return server.process.poll() is None
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(STEADY)
    return False
