"""SUBMIT_JOB_SCHED: a background job that runs once, at the next minute that matches its fields.

When that minute comes is the business of the engine's own tests; here it never does. gearmand refuses the packet.
"""

import time

import pytest

from tests.support.gearman_peer import Kind, Peer

pytestmark = pytest.mark.differs_from_gearmand

Fields = tuple[bytes, bytes, bytes, bytes, bytes]

# Minute, hour, day of month, month, day of week; empty means any.
GOOD: list[Fields] = [
    (b"0", b"0", b"1", b"1", b""),
    (b"59", b"23", b"31", b"12", b""),
    (b"", b"", b"", b"", b""),
    (b"", b"", b"", b"", b"0"),
    (b"", b"", b"", b"", b"6"),
    (b"00", b"07", b"", b"", b""),
    (b"30", b"12", b"29", b"2", b""),
]
BAD: list[Fields] = [
    (b"60", b"", b"", b"", b""),
    (b"-1", b"", b"", b"", b""),
    (b"", b"24", b"", b"", b""),
    (b"", b"", b"0", b"", b""),
    (b"", b"", b"32", b"", b""),
    (b"", b"", b"", b"0", b""),
    (b"", b"", b"", b"13", b""),
    (b"", b"", b"", b"", b"7"),
    (b"x", b"", b"", b"", b""),
    (b"", b"1.5", b"", b"", b""),
    (b"*", b"", b"", b"", b""),
    (b"", b"", b"", b"9" * 30, b""),
    (b"", b"", b"31", b"2", b""),
]


def in_another_month() -> Fields:
    """Midnight of a day that is about half a year away."""
    return (b"0", b"0", b"1", b"%d" % ((time.localtime().tm_mon + 5) % 12 + 1), b"")


def shown(fields: Fields) -> str:
    return " ".join(field.decode() or "any" for field in fields)


@pytest.mark.parametrize("fields", GOOD, ids=shown)
def test_fields_in_range_make_a_job(fields: Fields, client: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_JOB_SCHED, function, b"", *fields, b"data")
    assert client.status(client.body(Kind.JOB_CREATED)) == (1, 0, 0, 0)


@pytest.mark.parametrize("fields", BAD, ids=shown)
def test_fields_out_of_range_make_an_error(fields: Fields, client: Peer, admin: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_JOB_SCHED, function, b"", *fields, b"data")
    code, text = client.error()
    assert code
    assert text
    assert not [row for row in admin.listing("status") if row[0] == function and row[1] != b"0"]


def test_it_waits_for_its_time(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_JOB_SCHED, function, b"key", *in_another_month(), b"da\0ta")
    handle = client.body(Kind.JOB_CREATED)
    assert client.status(handle) == (1, 0, 0, 0)
    assert [handle, b"0", b"0", b"1"] in admin.listing("show jobs")
    assert worker.take() is None
    worker.sleep().silence()
    client.silence()
    assert client.status(handle) == (1, 0, 0, 0)


def test_it_holds_its_key(client: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_JOB_SCHED, function, b"key", *in_another_month(), b"data")
    handle = client.body(Kind.JOB_CREATED)
    assert client.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG) == handle


def test_it_can_be_cancelled(client: Peer, admin: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_JOB_SCHED, function, b"key", *in_another_month(), b"data")
    handle = client.body(Kind.JOB_CREATED)
    assert admin.text(b"cancel job " + handle).line() == b"OK\r\n"
    assert client.status(handle) == (0, 0, 0, 0)
