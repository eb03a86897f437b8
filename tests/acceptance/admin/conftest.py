"""One server with five doors, and the control function through each of them."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import danga_peer, gearman_peer, memodb_peer, periodic_peer, serving
from tests.support.gearman_peer import Kind

CONTROL = b"geartrain.control"
SCHEMES = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey")
LISTENS = [f"--listen={scheme}://{serving.HOST}:0" for scheme in SCHEMES]

_serial = itertools.count(1)

Ask = Callable[..., Any]
Ports = dict[str, int]


def ports_of(server: serving.ServerProcess) -> Ports:
    return {url.partition(":")[0]: int(url.rpartition(":")[2]) for url in server.urls}


def by_gearman(port: int, question: bytes) -> bytes:
    with gearman_peer.Peer(port) as peer:
        handle = peer.submit(CONTROL, b"", question)
        name, result = peer.body(Kind.WORK_COMPLETE).split(b"\0", 1)
        assert name == handle
        return result


def by_danga(port: int, question: bytes) -> bytes:
    with danga_peer.Peer(port) as peer:
        peer.create(CONTROL, args=question, type=danga_peer.SYNC)
        finished, code, result = peer.streamed_completion()
        assert (finished, code) == (1, 0)
        return result


def by_periodic(port: int, question: bytes) -> bytes:
    with periodic_peer.Peer(port) as peer:
        return peer.data(peer.run(CONTROL, b"question %d" % next(_serial), question))


def by_memodb(port: int, question: bytes) -> bytes:
    with memodb_peer.Pipe.tcp(port) as pipe:
        return pipe.reply(pipe.job(CONTROL.decode(), question)).payload


def by_gearmonkey(port: int, question: bytes) -> bytes:
    client = redis_py_peer.Client(port)
    try:
        number = client.run(CONTROL.decode(), question, options=redis_py_peer.Options.BLOCKING, timeout=10)
        job = client.get(CONTROL.decode(), number)
        assert job.output is not None
        return job.output
    finally:
        client.redis.close()


WAYS: dict[str, Callable[[int, bytes], bytes]] = {
    "gearman": by_gearman,
    "danga": by_danga,
    "periodic": by_periodic,
    "memodb+tcp": by_memodb,
    "gearmonkey": by_gearmonkey,
}


def asker(ports: Ports, door: str = "gearman") -> Ask:
    """Asks the control function through a door, and gives its whole reply."""

    def ask(verb: str, **arguments: Any) -> Any:
        return json.loads(WAYS[door](ports[door], json.dumps({"do": verb, **arguments}).encode()))

    return ask


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.ServerProcess]:
    """Durable, since answers have to wait for the disk."""
    with serving.serve("--store", f"sqlite://{tmp_path_factory.mktemp('store')}/jobs.db", *LISTENS) as running:
        yield running


@pytest.fixture(scope="module")
def ports(server: serving.ServerProcess) -> Ports:
    return ports_of(server)


@pytest.fixture
def ask(ports: Ports) -> Ask:
    return asker(ports)


@pytest.fixture
def function() -> bytes:
    """A function of this test's own."""
    return b"steered %d" % next(_serial)


@pytest.fixture
def peer(ports: Ports) -> Iterator[gearman_peer.Peer]:
    with gearman_peer.Peer(ports["gearman"]) as made:
        yield made
