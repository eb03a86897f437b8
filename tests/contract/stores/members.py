"""Stores that are opened as servers of one cluster."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from geartrain.store.postgresql import PostgresqlStore
from geartrain.store.shared import Member

Join = Callable[..., PostgresqlStore]


@pytest.fixture
def join(schema_url: str) -> Iterator[Join]:
    """Opens a store as one more server of the cluster."""
    with contextlib.ExitStack() as stack:

        def join(name: str, url: str = schema_url, **member: object) -> PostgresqlStore:
            store = PostgresqlStore(url, member=Member(name=name, **member))  # type: ignore[arg-type]
            store.first_id = store.open()  # type: ignore[attr-defined]
            stack.callback(store.close, 0)
            return store

        yield join
