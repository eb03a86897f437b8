"""Servers for the library: ours and the real gearmand, one of each per file; every test has functions of its own."""

import asyncio
import contextlib
import itertools
import random
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

import geartrain
from tests.support import process, serving

T = TypeVar("T")

HERE = Path(__file__).parent
PATIENCE = process.PATIENCE  # seconds until a test that waits for something has failed
_serial = itertools.count(1)


def serve(port: int = 0, *flags: str) -> contextlib.AbstractContextManager[serving.ServerProcess]:
    """Our server, with nothing on disk."""
    return serving.serve("--store", "memory", "--listen", f"gearman://{serving.HOST}:{port}", *flags)


STARTS: dict[str, Callable[..., contextlib.AbstractContextManager[serving.ServerProcess]]] = {
    "geartrain": serve,
    "gearmand": lambda port=0: serving.gearmand(port=port),
}
EVERY_SERVER = ["geartrain", pytest.param("gearmand", marks=pytest.mark.peer("gearmand"))]


@pytest.fixture(scope="module", params=EVERY_SERVER)
def server(request: pytest.FixtureRequest) -> Iterator[serving.ServerProcess]:
    """One for all the tests of a file."""
    with STARTS[request.param]() as running:
        yield running


@pytest.fixture(scope="module")
def ours() -> Iterator[serving.ServerProcess]:
    """Our server only, where gearmand can do no less."""
    with serve() as running:
        yield running


@pytest.fixture
def function() -> str:
    """A function that no other test uses."""
    return f"function-{next(_serial)}"


def free_port() -> int:
    """One that is free now, and that no outgoing connection takes."""
    for port in random.sample(serving.PORTS, 50):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((serving.HOST, port))
            return port
    raise AssertionError("no free port")


def play(scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a scenario, which fails when it takes too long."""

    async def bounded() -> T:
        async with asyncio.timeout(3 * PATIENCE):
            return await scenario()

    return asyncio.run(bounded())


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Ask again until it is so: for what gives no signal."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not await condition():
        assert asyncio.get_running_loop().time() < deadline, f"never came true: {what}"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def working(*urls: str, **functions: Any) -> AsyncIterator[geartrain.AsyncWorker]:
    """A worker that offers these functions; `_` in a name stands for `-`."""
    worker = geartrain.AsyncWorker(*urls, concurrency=10)
    for name, call in functions.items():
        worker.register(name.replace("_", "-"), call)
    async with worker:
        yield worker


@contextlib.contextmanager
def plain_worker(worker: geartrain.Worker) -> Iterator[geartrain.Worker]:
    """A plain worker at work in a thread."""
    ready = threading.Event()
    thread = threading.Thread(target=worker.run, kwargs={"ready": ready.set})
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield worker
    finally:
        worker.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
