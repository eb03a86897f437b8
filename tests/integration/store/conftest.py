"""A SQLite file, and a disk under it that can fail."""

from collections.abc import Iterator

import pytest

from tests.crash.faulty_disk.faulty_vfs import FaultyDisk
from tests.support.store_fixtures import opened, path

__all__ = ["opened", "path"]


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    """A disk that fails when told to, for everything that the test opens."""
    disk = FaultyDisk()
    yield disk
    disk.begin(None)
    disk.remove()
