"""GET_STATUS, GET_STATUS_UNIQUE and what WORK_STATUS leaves behind."""

import pytest

from tests.support.gearman_peer import Depart, Dial, Hire, Kind, Peer

# C's atoi, stored as 32 bits without a sign.
NUMBERS = [
    (b"1", 1),
    (b"100", 100),
    (b"abc", 0),
    (b"0.5", 0),
    (b"", 0),
    (b"-", 0),
    (b" 7", 7),
    (b"\t8", 8),
    (b"12abc", 12),
    (b"+5", 5),
    (b"-1", 4294967295),
    (b"2147483648", 2147483648),
    (b"4294967295", 4294967295),
    (b"4294967296", 0),
]


def by_unique(peer: Peer, unique: bytes) -> bytes:
    peer.send(Kind.GET_STATUS_UNIQUE, unique)
    return peer.body(Kind.STATUS_RES_UNIQUE)


def test_the_life_of_a_job(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    assert admin.status(handle) == (1, 0, 0, 0)
    worker.grab()
    assert admin.status(handle) == (1, 1, 0, 0)
    worker.send(Kind.WORK_STATUS, handle, b"1", b"4")
    client.expect(Kind.WORK_STATUS, handle, b"1", b"4")
    admin.send(Kind.GET_STATUS, handle)
    admin.expect(Kind.STATUS_RES, handle, b"1", b"1", b"1", b"4")
    worker.send(Kind.WORK_STATUS, handle, b"3", b"4")
    client.expect(Kind.WORK_STATUS, handle, b"3", b"4")
    assert admin.status(handle) == (1, 1, 3, 4)
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")
    assert admin.status(handle) == (0, 0, 0, 0)


def test_a_background_job_is_followed_by_its_handle(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data", kind=Kind.SUBMIT_JOB_BG)
    worker.grab()
    worker.send(Kind.WORK_STATUS, handle, b"5", b"6").silence()
    assert client.status(handle) == (1, 1, 5, 6)
    worker.send(Kind.WORK_FAIL, handle).silence()
    assert client.status(handle) == (0, 0, 0, 0)


@pytest.mark.parametrize(("sent", "stored"), NUMBERS, ids=[repr(sent) for sent, _ in NUMBERS])
def test_numbers_are_stored_like_atoi_and_forwarded_as_sent(
    sent: bytes, stored: int, client: Peer, worker: Peer, function: bytes
) -> None:
    handle = client.submit(function)
    worker.grab()
    worker.send(Kind.WORK_STATUS, handle, sent, sent)
    client.expect(Kind.WORK_STATUS, handle, sent, sent)
    assert client.status(handle) == (1, 1, stored, stored)


@pytest.mark.parametrize("loss", ["CANT_DO", "RESET_ABILITIES", "disconnect"])
def test_a_requeued_job_starts_again_from_nothing(
    loss: str, client: Peer, worker: Peer, depart: Depart, function: bytes
) -> None:
    handle = client.submit(function)
    worker.grab()
    worker.send(Kind.WORK_STATUS, handle, b"1", b"2")
    client.expect(Kind.WORK_STATUS, handle, b"1", b"2")
    if loss == "CANT_DO":
        worker.send(Kind.CANT_DO, function).silence()
    elif loss == "RESET_ABILITIES":
        worker.send(Kind.RESET_ABILITIES).silence()
    else:
        depart(worker)
    assert client.status(handle) == (1, 0, 0, 0)
    client.silence()


def test_by_unique(dial: Dial, worker: Peer, function: bytes) -> None:
    first, second, unique = dial(), dial(), b"unique of " + function
    assert by_unique(first, unique) == unique + b"\0000\0000\0000\0000\0000"
    handle = first.submit(function, unique)
    assert by_unique(first, unique) == unique + b"\0001\0000\0000\0000\0001"
    second.submit(function, unique)
    assert by_unique(first, unique) == unique + b"\0001\0000\0000\0000\0002"
    worker.grab()
    worker.send(Kind.WORK_STATUS, handle, b"1", b"4")
    second.expect(Kind.WORK_STATUS, handle, b"1", b"4")
    assert by_unique(second, unique) == unique + b"\0001\0001\0001\0004\0002"
    worker.send(Kind.WORK_COMPLETE, handle, b"")
    second.expect(Kind.WORK_COMPLETE, handle, b"")
    assert by_unique(second, unique) == unique + b"\0000\0000\0000\0000\0000"


def test_a_background_job_has_no_clients(client: Peer, function: bytes) -> None:
    unique = b"unique of " + function
    client.submit(function, unique, kind=Kind.SUBMIT_JOB_BG)
    assert by_unique(client, unique) == unique + b"\0001\0000\0000\0000\0000"


def test_clients_that_leave_are_no_longer_counted(dial: Dial, depart: Depart, function: bytes) -> None:
    first, second, unique = dial(), dial(), b"unique of " + function
    first.submit(function, unique)
    second.submit(function, unique)
    depart(second)
    assert by_unique(first, unique) == unique + b"\0001\0000\0000\0000\0001"


def test_the_newer_of_two_functions_answers_for_a_shared_unique(client: Peer, hire: Hire, function: bytes) -> None:
    unique, newer = b"unique of " + function, function + b" again"
    client.submit(function, unique)
    client.submit(newer, unique)
    worker = hire(newer)
    worker.grab()
    assert by_unique(client, unique) == unique + b"\0001\0001\0000\0000\0001"


def test_a_job_keyed_by_its_data_is_not_found_by_the_dash(client: Peer, function: bytes) -> None:
    client.submit(function, b"-", b"data")
    assert by_unique(client, b"-") == b"-\0000\0000\0000\0000\0000"
