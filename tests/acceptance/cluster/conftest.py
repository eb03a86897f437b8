"""Servers that share a schema of a real PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support import postgres, postgres_programs, serving
from tests.support.postgres_fixtures import Clusters
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url

POSTGRESQL = pytest.mark.peer(postgres_programs.PEERS[postgres_programs.NEWEST])
GEARMAN = f"gearman://{serving.HOST}:0"
HTTP = f"http://{serving.HOST}:0"

Pair = tuple[serving.ServerProcess, serving.ServerProcess]


@contextmanager
def member(url: str, name: str, *options: str) -> Iterator[serving.ServerProcess]:
    """A server of the cluster at this URL. Its doors are Gearman's and HTTP's, in this order."""
    own = ("--store", url, "--node-name", name, "--listen", GEARMAN, "--listen", HTTP)
    with serving.serve(*own, *options) as server:
        yield server


@contextmanager
def members(url: str) -> Iterator[Pair]:
    """Two servers, `one` and `two`, with a lease that no test waits for."""
    with member(url, "one", "--lease", "60s") as one, member(url, "two", "--lease", "60s") as two:
        yield one, two


@pytest.fixture(scope="module")
def pair(clusters: Clusters) -> Iterator[Pair]:
    """Two servers that the tests of a file share, and leave as they are."""
    shared = clusters(postgres_programs.NEWEST)
    with postgres.fresh_schema(shared) as name, members(shared.url(schema=name)) as servers:
        yield servers


@pytest.fixture
def own_pair(schema_url: str) -> Iterator[Pair]:
    """Two servers for this test alone."""
    with members(schema_url) as servers:
        yield servers
