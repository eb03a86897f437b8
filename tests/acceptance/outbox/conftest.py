"""A server for each file, and databases with an outbox."""

from collections.abc import Iterator

import pytest

from tests.support import serving
from tests.support.http_peer import Peer
from tests.support.outbox_database import database as database
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listen = [f"--listen={scheme}://{serving.HOST}:0" for scheme in ("gearman", "http")]
    with serving.serve("--store", "memory", *listen) as running:
        yield running


@pytest.fixture(scope="module")
def peer(server: serving.ServerProcess) -> Peer:
    return Peer(server.urls[1])
