"""The two places where GearMonkey can be spoken, and the programs that speak it: every scenario is played by all."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import redis_server, serving

_serial = itertools.count(1)


class Place(NamedTuple):
    """A server that speaks Redis' protocol."""

    name: str
    port: int

    @property
    def url(self) -> str:
        return f"gearmonkey://{serving.HOST}:{self.port}/0"


@contextlib.contextmanager
def opened(name: str) -> Iterator[Place]:
    if name == "redis":
        with redis_server.serve() as running:
            yield Place(name, running.port)
    else:
        with serving.serve("--store", "memory", "--listen", f"gearmonkey://{serving.HOST}:0") as server:
            yield Place(name, server.port)


REDIS = pytest.param("redis", marks=pytest.mark.peer("redis-server"))


@pytest.fixture(scope="session", params=[REDIS, "geartrain"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A real Redis, and our door: whatever is asserted holds for both."""
    with opened(request.param) as there:
        yield there


@pytest.fixture
def function() -> str:
    """A function of this test's own, with a colon in its name since that is allowed."""
    return f"mail:send{next(_serial)}"


@pytest.fixture
def raw(place: Place) -> Iterator[Any]:
    """redis-py itself."""
    connection = redis_py_peer.connect(place.port)
    yield connection
    connection.close()


@pytest.fixture(params=["ours", "plain"])
def client(request: pytest.FixtureRequest, place: Place) -> Iterator[Any]:
    """A client."""
    made: Any = gearmonkey.Client(place.url) if request.param == "ours" else redis_py_peer.Client(place.port)
    yield made
    made.close()


@pytest.fixture(params=["ours", "plain"])
def make_worker(request: pytest.FixtureRequest, place: Place) -> Iterator[Callable[..., Any]]:
    """A worker that accepts a function; it is there, and counted, once it has looked for a job."""
    workers: list[Any] = []

    def make(function: str, work: Callable[[bytes], Any] = lambda payload: payload[::-1]) -> Any:
        ours = request.param == "ours"
        worker: Any = gearmonkey.Worker(place.url, work) if ours else redis_py_peer.Worker(place.port, work)
        workers.append(worker)
        worker.accept(function)
        assert worker.run_one(0.01) is False
        return worker

    yield make
    for worker in workers:
        worker.close()
