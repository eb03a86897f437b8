"""DUMP of one server, LOAD into another."""

import pytest

from tests.acceptance.periodic.conftest import Start
from tests.support.periodic_peer import WORKER, Command, Dialect, Peer, job, jobs


def test_from_one_server_to_another(start: Start, dialect: Dialect) -> None:
    with start() as one, start() as two, Peer(one.port, dialect) as client:
        expected = {
            (b"f", b"scheduled", b"payload", 4_000_000_000, 0, 0),
            (b"f", b"all", bytes(range(256)), 4_000_000_001, -7, 9),
            (b"g", b"counted", b"", 1000, 3, 0),
            (b"g", b"runs", b"", 2000, 0, 5),
        }
        for function, name, payload, run_at, count, timeout in expected:
            client.submit(function, name, payload, run_at, count=count, timeout=timeout)
        with Peer(one.port, dialect, WORKER) as worker:
            worker.offer(b"g")
            worker.take()
            worker.take()
            dumped = client.data(client.send(Command.DUMP))
        assert {entry[1:7] for entry in client.dump()} >= {entry for entry in expected if entry[0] == b"f"}
        with Peer(two.port, dialect, WORKER) as other:
            other.succeed(Command.LOAD, dumped)
            assert {entry[1:7] for entry in other.dump()} == expected
            other.offer(b"g")
            assert [other.take().name, other.take().name] == [b"counted", b"runs"]


def test_of_an_empty_server(start: Start, dialect: Dialect) -> None:
    with start() as server, Peer(server.port, dialect) as client:
        assert client.data(client.send(Command.DUMP)) == bytes(8)
        client.succeed(Command.LOAD, bytes(8))
        assert client.data(client.send(Command.STATUS)) == b""


def test_load_replaces_what_waits(client: Peer, function: bytes) -> None:
    client.submit(function, b"name", b"old", 4_000_000_000)
    client.succeed(Command.LOAD, jobs(job(function, b"name", b"new", 4_000_000_001)))
    [entry] = [entry for entry in client.dump() if entry.function == function]
    assert (entry.payload, entry.run_at) == (b"new", 4_000_000_001)


@pytest.mark.parametrize("said", [jobs(job(b"f", b"n"))[:-1], (2**63).to_bytes(8, "big"), b"\0" * 7])
def test_a_dump_that_is_cut_off_is_refused_whole(client: Peer, said: bytes) -> None:
    client.send(Command.LOAD, said)
    client.closed()
