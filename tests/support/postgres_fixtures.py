"""Fixtures for tests on a real PostgreSQL, which a process starts when its first test asks for it.

    from tests.support.postgres_fixtures import cluster, clusters, schema_url

Mark the tests with the peer: `pytest.mark.peer(postgres_programs.PEERS[postgres_programs.NEWEST])`.
"""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.support import postgres, postgres_programs

Clusters = Callable[[int], postgres.Cluster]


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    """The cluster of a version that this process's tests share; no test stops it or changes its settings.

    It does not wait for the disk, and must not be used to show what a crash leaves.
    """
    with contextlib.ExitStack() as stack:
        running: dict[int, postgres.Cluster] = {}

        def start(version: int) -> postgres.Cluster:
            if version not in running:
                running[version] = stack.enter_context(postgres.running(version, fsync="off"))
            return running[version]

        yield start


@pytest.fixture
def cluster(clusters: Clusters) -> postgres.Cluster:
    """The newest version's. A file that is to run on others too overrides this one, with a version as a parameter."""
    return clusters(postgres_programs.NEWEST)


@pytest.fixture
def schema(cluster: postgres.Cluster) -> Iterator[str]:
    """The name of a schema for this test alone, which does not exist yet."""
    with postgres.fresh_schema(cluster) as name:
        yield name


@pytest.fixture
def schema_url(cluster: postgres.Cluster, schema: str) -> str:
    """The URL of a store for this test alone."""
    return cluster.url(schema=schema)
