"""Every test here runs once per kind of store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geartrain.store.contract import Store
from tests.contract.places import PLACES, Accident, Place

FIRST_UNUSED = 10_000_000  # what `reopened` says when it closes a store: above every id that the tests use

Reopen = Callable[[], Store]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return PLACES[request.param](tmp_path)


@pytest.fixture
def accident(place: Place) -> Accident:
    if place.accident is None:
        pytest.skip("this store has nothing that could fail")
    return place.accident


@pytest.fixture
def open_stores() -> Iterator[list[Store]]:
    """Those that the test opened and did not close."""
    stores: list[Store] = []
    yield stores
    for store in stores:
        store.close(FIRST_UNUSED)


@pytest.fixture
def store(place: Place, open_stores: list[Store]) -> Store:
    """An open store with nothing in it."""
    store = place.store()
    store.open()
    open_stores.append(store)
    return store


@pytest.fixture
def reopened(place: Place, store: Store, open_stores: list[Store]) -> Reopen:
    """Closes the store and opens the next one on the same place."""

    def reopen() -> Store:
        open_stores.pop().close(FIRST_UNUSED)
        following = place.store()
        following.open()
        open_stores.append(following)
        return following

    return reopen
