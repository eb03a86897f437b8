"""Where tests are: no process and no socket in tests/unit, and no file that the order names is missing."""

import asyncio
import multiprocessing
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from geartrain import eventloop
from tests.support import order

ROOT = Path(__file__).parents[2]


def serve(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def listen() -> None:
        await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(listen())


FORBIDDEN: dict[str, Callable[[], object]] = {
    "subprocess": lambda: subprocess.run([sys.executable, "--version"]),
    "multiprocessing": multiprocessing.get_context("fork").Process().start,
    "listener": lambda: socket.create_server(("127.0.0.1", 0)),
    "connection": lambda: socket.create_connection(("127.0.0.1", 9)),
    "asyncio": lambda: serve(asyncio.new_event_loop),
    "best loop": lambda: serve(eventloop.best().factory),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_process_or_a_socket_is_a_failure(name: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="move this test to tests/integration"):
        FORBIDDEN[name]()


def test_a_connected_pair_is_allowed() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.sendall(b"ping")
        assert far.recv(4) == b"ping"


@pytest.mark.parametrize("file", order.LONGEST)
def test_the_order_names_files_that_exist(file: str) -> None:
    assert (ROOT / file).is_file()
