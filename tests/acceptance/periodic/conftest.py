"""The server under test, and peers in both dialects that are closed with the test that opened them."""

import contextlib
import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support import gearman_peer, serving
from tests.support.peer import Location
from tests.support.periodic_peer import CLIENT, WORKER, Dial, Dialect, Peer

_serial = itertools.count(1)

LISTEN = ("--listen", "periodic://127.0.0.1:0")
Start = Callable[..., AbstractContextManager[serving.ServerProcess]]


def port_of(server: serving.ServerProcess, scheme: str) -> int:
    [url] = [url for url in server.urls if url.startswith(f"{scheme}://")]
    return int(url.rpartition(":")[2])


@pytest.fixture(scope="module")
def socket_file() -> Iterator[str]:
    """A path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="geartrain-") as folder:
        yield f"{folder}/periodic.sock"


@pytest.fixture(scope="module")
def server(socket_file: str) -> Iterator[serving.ServerProcess]:
    """One for all the tests of a file; each uses functions of its own."""
    listen = [*LISTEN, "--listen", f"periodic+unix://{socket_file}", "--listen", "gearman://127.0.0.1:0"]
    with serving.serve("--store", "memory", "--log-lines-per-peer", "0", *listen) as server:
        yield server


@pytest.fixture(params=list(Dialect), ids=lambda dialect: dialect.value)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """Tests that use it are run in both."""
    found: Dialect = request.param
    return found


@pytest.fixture
def place(server: serving.ServerProcess) -> Location:
    """Where the peers of a test come in."""
    return port_of(server, "periodic")


@pytest.fixture
def peers() -> Iterator[contextlib.ExitStack]:
    """Closes every peer at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def dial(place: Location, peers: contextlib.ExitStack) -> Dial:
    """Opens a connection."""

    def dial(dialect: Dialect, kind: int | None = CLIENT, extra: bytes = b"", at: Location = place) -> Peer:
        return peers.enter_context(Peer(at, dialect, kind, extra))

    return dial


@pytest.fixture
def client(dial: Dial, dialect: Dialect) -> Peer:
    return dial(dialect)


@pytest.fixture
def hire(dial: Dial, dialect: Dialect) -> Callable[..., Peer]:
    """Opens a connection that offers the functions given."""

    def hire(*functions: bytes, dialect: Dialect = dialect) -> Peer:
        return dial(dialect, WORKER).offer(*functions)

    return hire


@pytest.fixture
def worker(hire: Callable[..., Peer], function: bytes) -> Peer:
    """A worker for the test's function."""
    return hire(function)


@pytest.fixture
def function() -> bytes:
    """A name that no other test uses."""
    return b"function-%d" % next(_serial)


@pytest.fixture
def gearman(server: serving.ServerProcess, peers: contextlib.ExitStack) -> Callable[[], gearman_peer.Peer]:
    """Opens a Gearman connection to the same server."""
    return lambda: peers.enter_context(gearman_peer.Peer(port_of(server, "gearman")))


@pytest.fixture
def start() -> Start:
    """Starts a server of the test's own: for flags, and for what changes the whole server."""
    return lambda *flags: serving.serve(*LISTEN, *(flags if "--store" in flags else ("--store", "memory", *flags)))


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/jobs.db"


@pytest.fixture
def free_port() -> int:
    """For a server whose address has to be known before it starts."""
    return next(filter(serving.is_free, random.sample(serving.PORTS, 5)))
