"""The names of the package, and that the server does not pay for them."""

import subprocess
import sys

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


def test_the_server_does_not_load_the_library() -> None:
    program = "import geartrain.server.server, sys; print([m for m in sys.modules if m.startswith('geartrain.client')])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "[]\n"
