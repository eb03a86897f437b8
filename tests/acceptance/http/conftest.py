"""One server for each file, with an HTTP and a Gearman door; most tests use function names of their own."""

from collections.abc import Iterator

import pytest

from tests.support import serving
from tests.support.http_peer import Peer

HTTP = f"http://{serving.HOST}:0"
GEARMAN = f"gearman://{serving.HOST}:0"


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", GEARMAN, "--listen", HTTP) as running:
        yield running


@pytest.fixture(scope="module")
def peer(server: serving.ServerProcess) -> Peer:
    """Somebody on this machine, where no token is needed."""
    return Peer(server.urls[1])


@pytest.fixture
def function(request: pytest.FixtureRequest) -> str:
    """A function of the test's own."""
    return f"f-{request.node.name}"
