"""Fixtures for tests of one SQLite file: its path, and stores on it that are closed at the end."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geartrain.store.sqlite import SqliteStore

Opened = Callable[[], SqliteStore]

UNUSED = 1_000_000  # what the next id is said to be when a test's store closes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def opened(path: Path) -> Iterator[Opened]:
    """Opens a store on the file; a second call closes the first."""
    stores: list[SqliteStore] = []

    def close() -> None:
        while stores:
            stores.pop().close(UNUSED)

    def open_next() -> SqliteStore:
        close()
        store = SqliteStore(path)
        store.open()
        stores.append(store)
        return store

    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(close)
        yield open_next
