"""Bytes that are no request: an ERROR says what was wrong, then that connection closes, and no other.

A packet that is complete and has too few arguments gets its ERROR too, and the connection stays open.

gearmand closes without a word, or waits for ever.
"""

import re

import pytest

from tests.support.gearman_peer import Dial, Kind, Peer, request

MEGABYTE = 1 << 20


def header(magic: bytes, kind: int, size: int) -> bytes:
    return magic + kind.to_bytes(4, "big") + size.to_bytes(4, "big")


def assert_refused(peer: Peer) -> None:
    code, text = peer.error()
    assert re.fullmatch("[A-Z_]+", code)
    assert text
    peer.closed()


FRAMES = [
    pytest.param(header(b"\0REQ", 0, 0), id="type 0"),
    pytest.param(header(b"\0REQ", 43, 0), id="type 43"),
    pytest.param(header(b"\0REQ", 99, 4) + b"data", id="type 99"),
    pytest.param(header(b"\0REQ", 0xFFFFFFFF, 0), id="type 2^32-1"),
    pytest.param(header(b"\0XYZ", 16, 0), id="magic XYZ"),
    pytest.param(header(b"\0req", 16, 0), id="magic in lower case"),
    pytest.param(header(b"\0\0\0\0", 0, 0), id="zeros"),
    pytest.param(header(b"\0RES", 99, 0), id="response of no type"),
]

# Each needs one separator more than it has.
TRUNCATED = [
    (Kind.SUBMIT_JOB, b"f"),
    (Kind.SUBMIT_JOB, b"f\0u"),
    (Kind.SUBMIT_JOB, b""),
    (Kind.SUBMIT_JOB_BG, b"f\0u"),
    (Kind.SUBMIT_JOB_HIGH, b"f\0u"),
    (Kind.SUBMIT_JOB_HIGH_BG, b"f\0u"),
    (Kind.SUBMIT_JOB_LOW, b"f\0u"),
    (Kind.SUBMIT_JOB_LOW_BG, b"f\0u"),
    (Kind.SUBMIT_JOB_EPOCH, b"f\0u\0000"),
    (Kind.SUBMIT_JOB_SCHED, b"f\0u\0001\0001\0001\0001\0001"),
    (Kind.SUBMIT_REDUCE_JOB, b"f\0u\0r\0000"),
    (Kind.SUBMIT_REDUCE_JOB_BG, b"f\0u\0r"),
    (Kind.CAN_DO_TIMEOUT, b"f"),
]


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("data", FRAMES)
def test_no_packet(data: bytes, dial: Dial) -> None:
    bystander, peer = dial(), dial()
    peer.raw(data)
    assert_refused(peer)
    bystander.silence()


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize(("kind", "body"), TRUNCATED, ids=[f"{kind.name} {body!r}" for kind, body in TRUNCATED])
def test_too_few_arguments(kind: Kind, body: bytes, dial: Dial) -> None:
    bystander, peer = dial(), dial()
    peer.send(kind, body)
    code, text = peer.error()
    assert code == "INVALID_PACKET"
    assert text
    peer.silence()
    bystander.silence()


@pytest.mark.differs_from_gearmand
def test_what_came_before_is_answered_first_and_what_comes_after_is_not_read(dial: Dial, function: bytes) -> None:
    bystander, peer = dial().register(function), dial()
    peer.raw(
        request(Kind.ECHO_REQ, b"before")
        + header(b"\0XYZ", 1, 0)
        + request(Kind.SUBMIT_JOB_BG, function, b"", b"after")
    )
    peer.expect(Kind.ECHO_RES, b"before")
    assert_refused(peer)
    assert bystander.take() is None


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("size", [65 * MEGABYTE, 1 << 31, 0xFFFFFFFF])
@pytest.mark.parametrize("kind", [Kind.ECHO_REQ, Kind.SUBMIT_JOB, Kind.CAN_DO], ids=lambda kind: kind.name)
def test_a_packet_that_announces_too_much_is_refused_at_once(kind: Kind, size: int, dial: Dial) -> None:
    bystander, peer = dial(), dial()
    peer.raw(header(b"\0REQ", kind, size))
    assert_refused(peer)
    bystander.silence()


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize(
    "data",
    [b"x" * 20_000, b"status " + b"x" * 20_000 + b"\n", b"x" * 1_000_000],
    ids=["no end", "with its end", "a million bytes"],
)
def test_a_text_line_too_long(data: bytes, dial: Dial) -> None:
    bystander, peer = dial(), dial()
    try:
        peer.raw(data)
    except ConnectionError:
        pass  # the server had read enough of it
    assert re.fullmatch(rb"ERR [A-Z_]+ \S+\r\n", peer.rest())
    bystander.silence()


@pytest.mark.differs_from_gearmand
def test_the_job_of_a_worker_that_sends_nonsense_goes_to_another(dial: Dial, function: bytes) -> None:
    client, bad, good = dial(), dial().register(function), dial().register(function)
    handle = client.submit(function, b"", b"data")
    assert bad.grab().handle == handle
    bad.raw(header(b"\0XYZ", 13, 0))
    assert_refused(bad)
    assert good.grab().handle == handle
    good.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")
