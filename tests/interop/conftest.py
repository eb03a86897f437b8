"""The server that the peers talk to, and the peers as processes that never outlive their test.

The target is our server. With GEARTRAIN_INTEROP_TARGET=gearmand it is Debian's gearmand, which shows that what
is asked for here is what the world is used to. Where ours does better on purpose, the test carries
`differs_from_gearmand` with the reason, and is skipped there.
"""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop import libraries
from tests.interop.peer import Ask, Client, Dial, Hire, Spawn, Start, Worker
from tests.support import process, serving
from tests.support.gearman_peer import Peer

GEARMAND = os.environ.get("GEARTRAIN_INTEROP_TARGET") == "gearmand"
MARKER = "differs_from_gearmand"

_serial = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}: ours does better on purpose; skipped on gearmand")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that is given a library needs it as a peer; what differs on purpose is not asked of gearmand."""
    for item in items:
        if not item.path.is_relative_to(libraries.HERE):
            continue
        given = item.callspec.params.values() if isinstance(item, pytest.Function) and _is_given(item) else ()
        for library in given:
            if isinstance(library, libraries.Library):
                item.add_marker(pytest.mark.peer(library.name))
        if GEARMAND:
            item.add_marker(pytest.mark.peer("gearmand"))
            if item.get_closest_marker(MARKER):
                item.add_marker(pytest.mark.skip(reason="ours does better than gearmand on purpose"))


def _is_given(item: pytest.Function) -> bool:
    return hasattr(item, "callspec")


def _start(port: int = 0) -> contextlib.AbstractContextManager[serving.ServerProcess]:
    if GEARMAND:
        return serving.gearmand(port=port)
    return serving.serve("--store", "memory", "--listen", f"gearman://{serving.HOST}:{port}")


@pytest.fixture(scope="module")
def target() -> Iterator[serving.ServerProcess]:
    """One for all the tests of a file; each uses functions of its own."""
    with _start() as server:
        yield server


@pytest.fixture
def own_target() -> Iterator[serving.ServerProcess]:
    """One for this test alone, which changes or lists the whole server."""
    with _start() as server:
        yield server


@pytest.fixture
def start() -> Start:
    """Starts a server, on a port if that is given."""
    return _start


@pytest.fixture
def function() -> str:
    """A name that no other test uses; workers take it as the prefix of their functions."""
    return f"function{next(_serial)}"


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    """Ends whatever a test started, whatever became of the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def home(stack: contextlib.ExitStack) -> Callable[[], Path]:
    """Makes a folder for one process."""
    return lambda: Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geartrain-peer-")))


@pytest.fixture
def spawn(stack: contextlib.ExitStack, home: Callable[[], Path]) -> Spawn:
    """Starts a command that is killed with the test at the latest."""

    def start(*command: str, stdin: bool = False) -> process.Process:
        started = process.Process(command, home(), stdin)
        stack.callback(started.kill)
        return started

    return start


@pytest.fixture
def hire(target: serving.ServerProcess, stack: contextlib.ExitStack, home: Callable[[], Path]) -> Hire:
    """Starts a library's worker with a prefix for its functions."""

    def start(library: libraries.Library, prefix: str) -> Worker:
        worker = Worker(library, target.port, prefix, home())
        stack.callback(worker.kill)
        worker.wait_until_ready()
        return worker

    return start


@pytest.fixture
def ask(target: serving.ServerProcess, stack: contextlib.ExitStack, home: Callable[[], Path]) -> Ask:
    """Starts a library's client with a verb, a function and perhaps a payload, a unique key and a priority."""

    def start(
        library: libraries.Library,
        verb: str,
        function: str,
        payload: bytes = b"",
        *,
        unique: str = "",
        priority: str = "normal",
    ) -> Client:
        client = Client(library, target.port, [verb, function, unique, priority], home())
        stack.callback(client.kill)
        client.write(payload, end=True)
        return client

    return start


@pytest.fixture
def dial(target: serving.ServerProcess, stack: contextlib.ExitStack) -> Dial:
    """Opens a connection of our own, byte by byte, to play the other side."""
    return lambda: stack.enter_context(Peer(target.port))
