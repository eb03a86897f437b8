"""The server under test, and peers that are closed with the test that opened them.

The target is our server; with GEARTRAIN_INTEROP_TARGET=gearmand it is Debian's gearmand, which shows that the
bytes asked for here are those of the real thing. Where ours differs on purpose, the test carries
`differs_from_gearmand` and is skipped there.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support import serving
from tests.support.gearman_peer import Depart, Dial, Hire, Kind, Peer, Start
from tests.support.peer import until

HERE = Path(__file__).parent
GEARMAND = os.environ.get("GEARTRAIN_INTEROP_TARGET") == "gearmand"
MARKER = "differs_from_gearmand"

_serial = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}: ours does better on purpose; skipped on gearmand")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What differs on purpose is not asked of gearmand."""
    if not GEARMAND:
        return
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.peer("gearmand"))
            if item.get_closest_marker(MARKER):
                item.add_marker(pytest.mark.skip(reason="ours does better than gearmand on purpose"))


def _start(*flags: str) -> AbstractContextManager[serving.ServerProcess]:
    if GEARMAND:
        return serving.gearmand(*flags)
    return serving.serve("--store", "memory", "--listen", "gearman://127.0.0.1:0", *flags)


@contextlib.contextmanager
def _start_drop_in(*options: str) -> Iterator[serving.ServerProcess]:
    command = [str(serving.installed_command()), "gearmand", f"--listen={serving.HOST}", "--port=0"]
    own = ["--pid-file=gearmand.pid", "--log-file=stderr", "--config-file=/dev/null"]
    with serving._running([*command, *own, *options]) as server:
        server.wait_for_doors(1)
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    """One for all the tests of a file; each uses functions of its own."""
    with _start() as server:
        yield server


@pytest.fixture(scope="module")
def port(server: serving.ServerProcess) -> int:
    return server.port


@pytest.fixture
def start() -> Start:
    """Starts a server of the test's own: for flags, and for what changes the whole server."""
    return _start


@pytest.fixture
def drop_in() -> Start:
    """Starts a server with options as gearmand has them: gearmand itself, or ours in its place."""
    return serving.gearmand if GEARMAND else _start_drop_in


@pytest.fixture
def function() -> bytes:
    """A name that no other test uses."""
    return b"function-%d" % next(_serial)


@pytest.fixture
def peers() -> Iterator[contextlib.ExitStack]:
    """Closes every peer at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def dial(port: int, peers: contextlib.ExitStack) -> Dial:
    """Opens a connection."""
    return lambda: peers.enter_context(Peer(port))


@pytest.fixture
def hire(dial: Dial) -> Hire:
    """Opens a connection that offers the functions given."""
    return lambda *functions: dial().register(*functions)


@pytest.fixture
def client(dial: Dial) -> Peer:
    return dial()


@pytest.fixture
def worker(hire: Hire, function: bytes) -> Peer:
    """A worker for the test's function."""
    return hire(function)


@pytest.fixture
def admin(dial: Dial) -> Peer:
    return dial()


@pytest.fixture
def depart(dial: Dial) -> Depart:
    """Closes a connection and returns when the server has noticed."""
    watch = dial()

    def listed(name: bytes) -> bool:
        watch.text("workers")
        return any(name in line.split() for line in watch.block())

    def leave(peer: Peer) -> None:
        name = b"leaver-%d" % next(_serial)
        peer.send(Kind.SET_CLIENT_ID, name)
        until(lambda: listed(name), "the connection has its name")
        peer.close()
        until(lambda: not listed(name), "the server noticed that a connection closed")

    return leave
