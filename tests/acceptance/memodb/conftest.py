"""A server with a MemoDB and a Gearman door, and pipes that are closed with the test that opened them."""

import contextlib
import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.support import gearman_peer, serving
from tests.support.memodb_peer import Pipe

_serial = itertools.count(1)


def start(*flags: str) -> contextlib.AbstractContextManager[serving.ServerProcess]:
    doors = ["--listen", f"memodb+tcp://{serving.HOST}:0", "--listen", f"gearman://{serving.HOST}:0"]
    return serving.serve("--store", "memory", *doors, *flags)


def port_of(server: serving.ServerProcess, scheme: str) -> int:
    [url] = [url for url in server.urls if url.startswith(f"{scheme}://")]
    return int(url.rpartition(":")[2].partition("/")[0])


@pytest.fixture(scope="module")
def flags() -> list[str]:
    """What the server of a file is started with; a file may have its own."""
    return []


@pytest.fixture(scope="module")
def server(flags: list[str]) -> Iterator[serving.ServerProcess]:
    """One for all the tests of a file; each uses services of its own."""
    with start(*flags) as server:
        yield server


@pytest.fixture
def service() -> str:
    """A name that no other test uses."""
    return f"service-{next(_serial)}"


@pytest.fixture
def peers() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def dial(server: serving.ServerProcess, peers: contextlib.ExitStack) -> Callable[[], Pipe]:
    """Opens a pipe."""
    return lambda: peers.enter_context(Pipe.tcp(port_of(server, "memodb+tcp")))


@pytest.fixture
def client(dial: Callable[[], Pipe]) -> Pipe:
    return dial()


@pytest.fixture
def worker(dial: Callable[[], Pipe]) -> Pipe:
    return dial()


@pytest.fixture
def gearman(server: serving.ServerProcess, peers: contextlib.ExitStack) -> Callable[[], gearman_peer.Peer]:
    """Opens a Gearman connection."""
    return lambda: peers.enter_context(gearman_peer.Peer(port_of(server, "gearman")))
