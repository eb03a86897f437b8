"""A server with all protocols that apps use, shared by the tests of a module."""

import os
import zlib
from collections.abc import Iterator

import pytest

from geartrain.app import App
from tests.support import serving

DOORS = ("gearman", "danga", "periodic", "gearmonkey", "memodb+tcp", "http")


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listens = [word for scheme in DOORS for word in ("--listen", f"{scheme}://{serving.HOST}:0")]
    with serving.serve("--store", "memory", *listens) as running:
        yield running


@pytest.fixture
def app(server: serving.ServerProcess, request: pytest.FixtureRequest) -> App:
    """An app with a unique name, so that tests share no functions and schedules."""
    return App(f"app{os.getpid()}-{zlib.crc32(request.node.nodeid.encode()):x}", server.url)
