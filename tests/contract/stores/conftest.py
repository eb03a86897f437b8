"""Every test here runs once per store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geartrain.store.contract import ResultLimits, Store
from tests.contract.stores.backends import BACKENDS, Backend, WriteFailure

FIRST_UNUSED = 10_000_000  # the next id when a store is closed: above every id that the tests use

Reopen = Callable[[], Store]


@pytest.fixture
def limits() -> ResultLimits:
    """Of the store; tests override it."""
    return ResultLimits()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path, limits: ResultLimits) -> Backend:
    return BACKENDS[request.param](tmp_path, limits)


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
