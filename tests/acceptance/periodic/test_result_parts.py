"""RECV_DATA and WORK_DATA: the parts of a result, as they come."""

from collections.abc import Callable

import pytest

from tests.support.periodic_peer import WORKER, Command, Dial, Dialect, Peer, job, text


@pytest.fixture
def client(dial: Dial) -> Peer:
    return dial(Dialect.TODAY)


@pytest.fixture
def worker(dial: Dial, function: bytes) -> Peer:
    return dial(Dialect.TODAY, WORKER).offer(function)


def receive(client: Peer, function: bytes, name: bytes = b"name") -> bytes:
    message_id = client.send(Command.RECV_DATA, job(function, name))
    client.expect(message_id, Command.SUCCESS)
    return message_id


def ask_first(client: Peer, function: bytes) -> tuple[bytes, bytes]:
    return receive(client, function), client.run(function, b"name")


def run_first(client: Peer, function: bytes) -> tuple[bytes, bytes]:
    running = client.run(function, b"name")
    return receive(client, function), running


@pytest.mark.parametrize("order", [ask_first, run_first])
def test_parts_then_the_end_then_the_result(
    client: Peer, worker: Peer, function: bytes, order: Callable[[Peer, bytes], tuple[bytes, bytes]]
) -> None:
    """The end comes before the result: a client that has the result may listen no longer."""
    receiving, running = order(client, function)
    given = worker.take()
    worker.part(given, b"one")
    worker.part(given, b"EOF" * 2)
    worker.done(given, b"result")
    assert client.payload() == receiving + b"\x1eone"
    assert client.payload() == receiving + b"\x1eEOFEOF"
    assert client.payload() == receiving + b"\x1eEOF"
    assert client.payload() == running + b"\x1eresult"
    client.silence()


def test_everyone_who_asked_gets_every_part(client: Peer, dial: Dial, worker: Peer, function: bytes) -> None:
    others = [client, dial(Dialect.TODAY)]
    ids = [receive(other, function) for other in others]
    client.submit(function, b"name")
    given = worker.take()
    worker.part(given, b"part")
    worker.fail(given)  # it is tried again, so this is not the end
    for other, message_id in zip(others, ids, strict=True):
        assert other.data(message_id) == b"part"
        other.silence()
    client.succeed(Command.REMOVE_JOB, text(function) + text(b"name"))
    for other, message_id in zip(others, ids, strict=True):
        assert other.data(message_id) == b"EOF"


def test_one_who_asks_when_the_job_runs(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name")
    given = worker.take()
    worker.part(given, b"before")
    receiving = receive(client, function)
    worker.part(given, b"after")
    assert client.data(receiving) == b"after"


def test_one_who_asks_for_another_job_hears_nothing(client: Peer, worker: Peer, function: bytes) -> None:
    receive(client, function, b"another")
    client.submit(function, b"name")
    given = worker.take()
    worker.part(given, b"part")
    worker.done(given)
    client.silence()


def test_one_who_has_left(client: Peer, dial: Dial, worker: Peer, function: bytes) -> None:
    leaver = dial(Dialect.TODAY)
    receive(leaver, function)
    receive(leaver, function, b"another")
    leaver.close()
    stayer = receive(client, function)
    client.submit(function, b"name")
    worker.part(worker.take(), b"part")
    assert client.data(stayer) == b"part"


def test_parts_of_a_job_that_nobody_listens_to(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name")
    given = worker.take()
    worker.part(given, b"part")
    worker.done(given)
    worker.part(given, b"late")
    worker.silence()
