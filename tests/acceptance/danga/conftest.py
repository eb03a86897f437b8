"""A server with a door for the draft and one for Gearman, and peers that are closed with their test."""

import contextlib
import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.support import danga_peer, gearman_peer, serving

DOORS = ("--listen", "danga://127.0.0.1:0", "--listen", "gearman://127.0.0.1:0")

_serial = itertools.count(1)

Dial = Callable[[], danga_peer.Peer]


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    """One for all the tests of a file, with its jobs on disk; each test uses names of its own."""
    with serving.serve(*DOORS) as server:
        yield server


@pytest.fixture(scope="module")
def port(server: serving.ServerProcess) -> int:
    return server.port


@pytest.fixture(scope="module")
def gearman_port(server: serving.ServerProcess) -> int:
    return int(server.urls[1].rpartition(":")[2])


@pytest.fixture
def name() -> bytes:
    """A job name that no other test uses."""
    return b"job-%d" % next(_serial)


@pytest.fixture
def peers() -> Iterator[contextlib.ExitStack]:
    """Closes every peer at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def dial(port: int, peers: contextlib.ExitStack) -> Dial:
    """Opens a connection that speaks the draft."""
    return lambda: peers.enter_context(danga_peer.Peer(port))


@pytest.fixture
def application(dial: Dial) -> danga_peer.Peer:
    return dial()


@pytest.fixture
def worker(dial: Dial, name: bytes) -> danga_peer.Peer:
    """A worker for the test's job name."""
    return dial().connect(name)


@pytest.fixture
def gearman(gearman_port: int, peers: contextlib.ExitStack) -> Callable[[], gearman_peer.Peer]:
    """Opens a connection that speaks Gearman."""
    return lambda: peers.enter_context(gearman_peer.Peer(gearman_port))
