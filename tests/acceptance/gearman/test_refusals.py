"""Requests that are well formed and cannot be granted: an ERROR, and the connection goes on."""

import pytest

from tests.support.gearman_peer import Hire, Kind, Peer

GIVEN = b"Job given in work result not found"
DATA = b"Job does not exist on server"
EXCEPTION = b"An exception was received for a job that does not exist"

# The text for a handle that is not this worker's, by what the worker says about it.
NOT_FOUND = [
    pytest.param(Kind.WORK_DATA, (b"data",), DATA, id="data"),
    pytest.param(Kind.WORK_WARNING, (b"data",), DATA, id="warning"),
    pytest.param(Kind.WORK_STATUS, (b"1", b"2"), GIVEN, id="status"),
    pytest.param(Kind.WORK_COMPLETE, (b"data",), GIVEN, id="complete"),
    pytest.param(Kind.WORK_FAIL, (), GIVEN, id="fail"),
    pytest.param(Kind.WORK_EXCEPTION, (b"data",), EXCEPTION, id="exception"),
]
Rest = tuple[bytes, ...]


@pytest.mark.parametrize(("kind", "rest", "text"), NOT_FOUND)
def test_unknown_handle(kind: Kind, rest: Rest, text: bytes, client: Peer) -> None:
    client.send(kind, b"H:nobody:1", *rest)
    client.expect(Kind.ERROR, b"JOB_NOT_FOUND", text)
    client.silence()


@pytest.mark.parametrize(("kind", "rest", "text"), NOT_FOUND)
def test_another_workers_job(kind: Kind, rest: Rest, text: bytes, client: Peer, hire: Hire, function: bytes) -> None:
    owner, thief = hire(function), hire(function)
    handle = client.submit(function, b"", b"data")
    owner.grab()
    thief.send(kind, handle, *rest)
    thief.expect(Kind.ERROR, b"JOB_NOT_FOUND", text)
    thief.silence()
    client.silence()
    owner.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")


@pytest.mark.parametrize(("kind", "rest", "text"), NOT_FOUND)
def test_a_job_that_waits(kind: Kind, rest: Rest, text: bytes, client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    worker.send(kind, handle, *rest)
    worker.expect(Kind.ERROR, b"JOB_NOT_FOUND", text)
    client.silence()
    assert worker.grab().handle == handle


@pytest.mark.parametrize("final", [Kind.WORK_COMPLETE, Kind.WORK_FAIL], ids=lambda kind: kind.name)
@pytest.mark.parametrize(("kind", "rest", "text"), NOT_FOUND)
def test_a_job_that_is_finished(
    kind: Kind, rest: Rest, text: bytes, final: Kind, client: Peer, worker: Peer, function: bytes
) -> None:
    handle = client.submit(function, b"", b"data")
    worker.grab()
    ending = (handle, b"result") if final == Kind.WORK_COMPLETE else (handle,)
    worker.send(final, *ending)
    client.expect(final, *ending)
    worker.send(kind, handle, *rest)
    worker.expect(Kind.ERROR, b"JOB_NOT_FOUND", text)
    worker.silence()
    client.silence()


@pytest.mark.parametrize("name", [b"exceptions", b"EXCEPTIONS", b"Exceptions"])
def test_the_exceptions_option_in_any_case_is_echoed_as_sent(name: bytes, client: Peer) -> None:
    client.send(Kind.OPTION_REQ, name)
    client.expect(Kind.OPTION_RES, name)


@pytest.mark.parametrize("name", [b"exception", b"exceptions2", b"", b"nothing", b"x" * 64])
def test_an_unknown_option(name: bytes, client: Peer) -> None:
    client.send(Kind.OPTION_REQ, name)
    client.expect(Kind.ERROR, b"UNKNOWN_OPTION", b"Server does not recognize given option")
    client.silence()


def test_a_full_queue(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    assert admin.text(b"maxqueue " + function + b" 1").line() == b"OK\r\n"
    client.submit(function, b"", b"first")
    client.send(Kind.SUBMIT_JOB_BG, function, b"", b"second")
    client.expect(Kind.ERROR, b"QUEUE_ERROR", b"Job queue is full")
    client.silence()
    assert worker.grab().data == b"first"
    assert worker.take() is None
