"""The frames between servers: vectors, versions that differ, and anything else that may arrive."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire import peer
from geartrain.wire.peer import Frame, Reader

LIMIT = 1 << 16

VECTORS: list[tuple[Frame, str]] = [
    (peer.LinkPing(7), "000000030391 07"),
    (peer.Room(1, 2, 3), "000000050b93010203"),
    (peer.Revoke(2**52), "0000000b0d91cf0010000000000000"),
    (peer.Settled(5), "000000032691 05"),
    (peer.DataReport(1, b"ab"), "00000007109201c4026162"),
]


@pytest.mark.parametrize(("frame", "expected"), VECTORS, ids=lambda value: type(value).__name__)
def test_vectors(frame: Frame, expected: str) -> None:
    data = bytes.fromhex(expected)
    assert peer.encode(frame) == data
    reader = Reader(LIMIT)
    reader.feed(data)
    assert reader.next()
    assert reader.frame() == frame
    assert not reader.next()


def framed(kind: int, values: list[object]) -> bytes:
    body = msgspec.msgpack.encode(values)
    return (len(body) + 1).to_bytes(4, "big") + bytes([kind]) + body


def frames(data: bytes) -> list[Frame | None]:
    reader = Reader(LIMIT)
    reader.feed(data)
    found = []
    while reader.next():
        found.append(reader.frame())
    return found


def test_a_kind_that_a_newer_version_has_is_skipped() -> None:
    assert frames(framed(250, [1, "new"]) + peer.encode(peer.LinkPing(1))) == [None, peer.LinkPing(1)]


def test_fields_that_a_newer_version_has_are_ignored() -> None:
    assert frames(framed(3, [1, "new", 2.5])) == [peer.LinkPing(1)]


def test_fields_that_an_older_version_lacks_have_their_default() -> None:
    values: list[object] = [1, 2, b"H:x:2", b"f", b"", 1, 1.0, 1.0, 0]
    [lend] = frames(framed(12, values))
    assert isinstance(lend, peer.Lend)
    assert (lend.timeout, lend.reducer, lend.returns) == (0.0, b"", 0)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\0\0\0\0\3", "a frame of 0 bytes"),
        ((LIMIT + 1).to_bytes(4, "big") + b"\3", "are allowed"),
        (framed(3, []), "a frame of kind 3 cannot be read"),
        (framed(3, ["text"]), "a frame of kind 3 cannot be read"),
        (b"\0\0\0\2\3\xc1", "a frame of kind 3 cannot be read"),
        (b"GET / HTTP/1.1\r\n\r\n", "are allowed"),
    ],
)
def test_what_is_no_frame(data: bytes, complaint: str) -> None:
    with pytest.raises(WireError, match=complaint):
        frames(data)


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_frames_that_arrive_in_pieces(payloads: list[bytes], size: int) -> None:
    sent = [peer.DataReport(number, data) for number, data in enumerate(payloads)]
    stream = b"".join(map(peer.encode, sent))
    reader, got = Reader(LIMIT), []
    for start in range(0, len(stream), size):
        reader.feed(stream[start : start + size])
        while reader.next():
            got.append(reader.frame())
    assert got == sent


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_a_wire_error(data: bytes) -> None:
    with contextlib.suppress(WireError):
        frames(data)


def test_numbers_of_kinds_are_used_once() -> None:
    assert len(set(peer.KINDS.values())) == len(peer.KINDS)


def hello(node: int, nonce: bytes) -> peer.Hello:
    return peer.Hello(peer.MAGIC, peer.VERSION, node, f"server {node}", nonce)


def test_proof_depends_on_everything_that_it_proves() -> None:
    one, two = hello(1, b"1" * 32), hello(2, b"2" * 32)
    proofs = {
        peer.proof(b"secret", one, two, True),
        peer.proof(b"secret", one, two, False),
        peer.proof(b"secret", two, one, True),
        peer.proof(b"secret", hello(1, b"3" * 32), two, True),
        peer.proof(b"secret", one, hello(3, b"2" * 32), True),
        peer.proof(b"other", one, two, True),
    }
    assert len(proofs) == 6
