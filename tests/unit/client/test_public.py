"""The names of the package."""

import pytest

import geartrain
from geartrain import errors


def test_the_librarys_names() -> None:
    names = ("AsyncClient", "AsyncJob", "AsyncWorker", "Client", "Job", "SyncJob", "Worker")
    assert [getattr(geartrain, name).__name__ for name in names] == list(names)
    assert geartrain.UnsupportedError is errors.UnsupportedError


@pytest.mark.parametrize("name", ["Nothing", "NothingError", "_HOME"])
def test_what_is_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(geartrain, name)
