"""Every test here runs once per store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geartrain.store.contract import ResultLimits, Store
from tests.contract.stores.backends import BACKENDS, Backend, WriteFailure, postgresql
from tests.support import postgres, postgres_programs
from tests.support.postgres_fixtures import clusters as clusters

FIRST_UNUSED = 10_000_000  # the next id when a store is closed: above every id that the tests use

Reopen = Callable[[], Store]


@pytest.fixture
def limits() -> ResultLimits:
    """Of the store; tests override it."""
    return ResultLimits()


POSTGRESQL = {f"postgresql-{version}": version for version in postgres_programs.PEERS}


@pytest.fixture(
    params=[*BACKENDS, *(pytest.param(name, marks=pytest.mark.peer(name)) for name in POSTGRESQL)],
)
def backend(request: pytest.FixtureRequest, tmp_path: Path, limits: ResultLimits) -> Iterator[Backend]:
    if request.param in BACKENDS:
        yield BACKENDS[request.param](tmp_path, limits)
        return
    cluster = request.getfixturevalue("clusters")(POSTGRESQL[request.param])
    with postgres.fresh_schema(cluster) as schema:
        yield postgresql(cluster.url(schema=schema), limits)


@pytest.fixture
def write_failure(backend: Backend) -> WriteFailure:
    if backend.write_failure is None:
        pytest.skip("this store cannot fail")
    return backend.write_failure


@pytest.fixture
def open_stores() -> Iterator[list[Store]]:
    """Stores that the test opened and did not close."""
    stores: list[Store] = []
    yield stores
    for store in stores:
        store.close(FIRST_UNUSED)


@pytest.fixture
def store(backend: Backend, open_stores: list[Store]) -> Store:
    """An open, empty store."""
    store = backend.store()
    store.open()
    open_stores.append(store)
    return store


@pytest.fixture
def reopened(backend: Backend, store: Store, open_stores: list[Store]) -> Reopen:
    """Closes the store and opens another instance on the same data."""

    def reopen() -> Store:
        open_stores.pop().close(FIRST_UNUSED)
        following = backend.store()
        following.open()
        open_stores.append(following)
        return following

    return reopen
