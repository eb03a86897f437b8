"""A real Redis, servers, and the installed `geartrain bridge` between them. Each test has functions of its own."""

import contextlib
import itertools
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import process, redis_server, serving

GEARMAND = pytest.param("gearmand", marks=pytest.mark.peer("gearmand"))
PROTOCOLS = ("gearman", "http", "gearmonkey", "periodic", "danga", "memodb+tcp")  # of our server, in this order
LISTEN = [word for protocol in PROTOCOLS for word in ("--listen", f"{protocol}://127.0.0.1:0")]

_serial = itertools.count(1)


class BridgeProcess(process.Process):
    """`geartrain bridge` between a Redis and a server."""

    def __init__(self, home: Path, redis: redis_server.RedisProcess, url: str, *words: str) -> None:
        command = [str(serving.installed_command()), "bridge", f"redis://{serving.HOST}:{redis.port}", url, *words]
        super().__init__([*command, "--json"], home)

    def stop(self) -> None:
        """Ctrl-C, after which it ends when the jobs under way have ended."""
        self.process.send_signal(signal.SIGINT)
        assert self.wait() == 0, self.account()
        assert "Traceback" not in self.stderr, self.account()


class Scene(NamedTuple):
    """Two sides, what starts a bridge between them, and a function of the test's own."""

    redis: redis_server.RedisProcess
    server: serving.ServerProcess
    bridge: Callable[..., BridgeProcess]
    function: str


@pytest.fixture(scope="package")
def redis() -> Iterator[redis_server.RedisProcess]:
    with redis_server.serve() as running:
        yield running


@pytest.fixture(scope="package")
def geartrain() -> Iterator[serving.ServerProcess]:
    """A server of ours with all its protocols."""
    with serving.serve("--store", "memory", *LISTEN) as running:
        yield running


@pytest.fixture(scope="package", params=["geartrain", GEARMAND])
def server(request: pytest.FixtureRequest) -> Iterator[serving.ServerProcess]:
    """A server whose first URL is a Gearman one."""
    if request.param == "geartrain":
        yield request.getfixturevalue("geartrain")
        return
    with serving.gearmand() as running:
        yield running


@pytest.fixture
def function() -> str:
    return f"image:resize{next(_serial)}"


@pytest.fixture
def bridge(redis: redis_server.RedisProcess) -> Iterator[Callable[..., BridgeProcess]]:
    """Starts a bridge, and returns when it has connected to both sides."""
    with contextlib.ExitStack() as stack:

        def start(url: str, *words: str) -> BridgeProcess:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geartrain-bridge-")))
            running = BridgeProcess(home, redis, url, *words)
            stack.callback(running.kill)
            assert running.says("joined"), running.account()
            return running

        yield start


@pytest.fixture
def scene(
    redis: redis_server.RedisProcess,
    server: serving.ServerProcess,
    bridge: Callable[..., BridgeProcess],
    function: str,
) -> Scene:
    """With each kind of server in turn."""
    return Scene(redis, server, bridge, function)


@pytest.fixture
def redis_worker(redis: redis_server.RedisProcess) -> Iterator[Callable[..., redis_py_peer.Worker]]:
    """Starts a worker of the original shape in a thread."""
    stopping = threading.Event()
    threads = []

    def start(function: str, work: Callable[[bytes], Any]) -> redis_py_peer.Worker:
        worker = redis_py_peer.Worker(redis.port, work)
        worker.accept(function)

        def run() -> None:
            while not stopping.is_set():
                worker.run_one(0.1)
            worker.close()

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return worker

    yield start
    stopping.set()
    for thread in threads:
        thread.join()
