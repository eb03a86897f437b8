"""Every packet of the draft, to the byte, in both directions; fed whole, byte by byte and at every split."""

from collections.abc import Iterable

import pytest

from geartrain.errors import WireError
from geartrain.wire import danga as wire

# By packet: the bytes on the wire, its type, its body, and the same packet as the codec writes it.
REQUESTS = {
    "worker_connect": (
        "00524551 01 00000007 616464 00 6d756c",
        (wire.WORKER_CONNECT, b"add\0mul"),
        wire.worker_connect([b"add", b"mul"]),
    ),
    "worker_connect, offering nothing": (
        "00524551 01 00000000",
        (wire.WORKER_CONNECT, b""),
        wire.worker_connect([]),
    ),
    "worker_disconnect": ("00524551 02 00000000", (wire.WORKER_DISCONNECT, b""), wire.worker_disconnect()),
    "worker_sleep": ("00524551 03 00000000", (wire.WORKER_SLEEP, b""), wire.worker_sleep()),
    "job_create_req": (
        "00524551 04 00000010 726573697a65 00 312d32 00 00 01 6a7067",
        (wire.JOB_CREATE_REQ, b"resize\x001-2\0\0\x01jpg"),
        wire.job_create_req(b"resize", b"1-2", wire.ASYNC_HANDLE, b"jpg"),
    ),
    "job_create_req without key and args": (
        "00524551 04 00000008 6d61696c 00 00 00 00",
        (wire.JOB_CREATE_REQ, b"mail\0\0\0\0"),
        wire.job_create_req(b"mail", b"", wire.SYNC_WAIT),
    ),
    "job_create_req with flags": (
        "00524551 04 00000005 78 00 00 ff 02",
        (wire.JOB_CREATE_REQ, b"x\0\0\xff\x02"),
        wire.job_create_req(b"x", b"", wire.ASYNC_THROW_AWAY, flags=255),
    ),
    "job_assign_req": ("00524551 06 00000000", (wire.JOB_ASSIGN_REQ, b""), wire.job_assign_req()),
    "job_status_announce": (
        "00524551 08 0000000c 00000001 00000064 0000001e",
        (wire.JOB_STATUS_ANNOUNCE, b"\0\0\0\x01\0\0\0\x64\0\0\0\x1e"),
        wire.job_status_announce(1, 100, 30),
    ),
    "job_status_req": (
        "00524551 09 00000007 483a6c61703a31",
        (wire.JOB_STATUS_REQ, b"H:lap:1"),
        wire.job_status_req(b"H:lap:1"),
    ),
    "job_complete_announce": (
        "00524551 0b 00000003 00 6f6b",
        (wire.JOB_COMPLETE_ANNOUNCE, b"\0ok"),
        wire.job_complete_announce(0, b"ok"),
    ),
    "job_complete_announce of a failure": (
        "00524551 0b 00000001 ff",
        (wire.JOB_COMPLETE_ANNOUNCE, b"\xff"),
        wire.job_complete_announce(255),
    ),
    "job_complete_req": (
        "00524551 0c 00000007 483a6c61703a31",
        (wire.JOB_COMPLETE_REQ, b"H:lap:1"),
        wire.job_complete_req(b"H:lap:1"),
    ),
}
RESPONSES = {
    "noop": ("00524553 00 00000000", (wire.NOOP, b""), wire.NOOP_PACKET),
    "job_create_res": (
        "00524553 05 00000007 483a6c61703a31",
        (wire.JOB_CREATE_RES, b"H:lap:1"),
        wire.job_create_res(b"H:lap:1"),
    ),
    "job_create_res without a handle": ("00524553 05 00000000", (wire.JOB_CREATE_RES, b""), wire.REFUSED_PACKET),
    "job_assign_res": (
        "00524553 07 0000000a 726573697a65 00 6a7067",
        (wire.JOB_ASSIGN_RES, b"resize\0jpg"),
        wire.job_assign_res(b"resize", b"jpg"),
    ),
    "job_assign_res without a job": ("00524553 07 00000000", (wire.JOB_ASSIGN_RES, b""), wire.NO_JOB_PACKET),
    "job_status_res": (
        "00524553 0a 0000000c 00000001 00000064 0000001e",
        (wire.JOB_STATUS_RES, b"\0\0\0\x01\0\0\0\x64\0\0\0\x1e"),
        wire.job_status_res(1, 100, 30),
    ),
    "job_complete_res": (
        "00524553 0d 00000007 00000003 00 6f6b",
        (wire.JOB_COMPLETE_RES, b"\0\0\0\x03\0ok"),
        wire.job_complete_res(3, 0, b"ok"),
    ),
    "job_complete_res of an unfinished job": (
        "00524553 0d 00000005 00000000 00",
        (wire.JOB_COMPLETE_RES, b"\0\0\0\0\0"),
        wire.INCOMPLETE_PACKET,
    ),
}
ALL = {**REQUESTS, **RESPONSES}
REQUEST_STREAM = b"".join(bytes.fromhex(raw) for raw, _, _ in REQUESTS.values())
RESPONSE_STREAM = b"".join(bytes.fromhex(raw) for raw, _, _ in RESPONSES.values())
STREAMS = {
    **{name: (bytes.fromhex(raw), [packet]) for name, (raw, packet, _) in ALL.items()},
    "all requests in a row": (REQUEST_STREAM, [packet for _, packet, _ in REQUESTS.values()]),
    "all responses in a row": (RESPONSE_STREAM, [packet for _, packet, _ in RESPONSES.values()]),
}


def read(chunks: Iterable[bytes], magic: bytes) -> list[tuple[int, bytes]]:
    """Everything that a reader makes of these chunks."""
    reader = wire.Reader(magic=magic)
    found = []
    for chunk in chunks:
        reader.feed(chunk)
        while (kind := reader.next()) != wire.MORE:
            found.append((kind, reader.body))
    assert reader.incomplete_size == 0
    return found


def test_every_packet_of_the_draft_has_a_vector() -> None:
    assert {packet[0] for _, packet, _ in ALL.values()} == wire.PACKETS.keys() == set(range(0x0E))


@pytest.mark.parametrize(("raw", "packet", "written"), ALL.values(), ids=ALL.keys())
def test_written(raw: str, packet: tuple[int, bytes], written: bytes) -> None:
    assert written == bytes.fromhex(raw)
    assert wire.packet(*packet) == written


@pytest.mark.parametrize(("stream", "expected"), STREAMS.values(), ids=STREAMS.keys())
class TestRead:
    def test_whole(self, stream: bytes, expected: list[tuple[int, bytes]]) -> None:
        assert read([stream], stream[:4]) == expected

    def test_byte_by_byte(self, stream: bytes, expected: list[tuple[int, bytes]]) -> None:
        assert read((stream[i : i + 1] for i in range(len(stream))), stream[:4]) == expected

    def test_at_every_split(self, stream: bytes, expected: list[tuple[int, bytes]]) -> None:
        for at in range(1, len(stream)):
            assert read([stream[:at], stream[at:]], stream[:4]) == expected, at


REFUSED = {
    "another magic": (b"\0XYZ\x06\0\0\0\0", "INVALID_MAGIC"),
    "another magic, only its beginning": (b"\0X", "INVALID_MAGIC"),
    "text": (b"status\n", "INVALID_MAGIC"),
    "a response to a server": (wire.NOOP_PACKET, "INVALID_MAGIC"),
    "a type that does not exist": (b"\0REQ\x0e\0\0\0\0", "INVALID_TYPE"),
    "type 255": (b"\0REQ\xff\0\0\0\0", "INVALID_TYPE"),
    "noop, which only servers send": (b"\0REQ\x00\0\0\0\0", "INVALID_TYPE"),
    "job_assign_res, which only servers send": (b"\0REQ\x07\0\0\0\0", "INVALID_TYPE"),
    "a packet of Gearman's": (b"\0REQ\0\0\0\x01\0\0\0\x03add", "INVALID_TYPE"),
    "worker_sleep with a body": (b"\0REQ\x03\0\0\0\x01x", "INVALID_LENGTH"),
    "job_assign_req with a body": (b"\0REQ\x06\0\0\0\x01x", "INVALID_LENGTH"),
    "worker_disconnect with a body": (b"\0REQ\x02\0\0\0\x01x", "INVALID_LENGTH"),
    "a status of 11 bytes": (b"\0REQ\x08\0\0\0\x0b" + bytes(11), "INVALID_LENGTH"),
    "a status of 13 bytes": (b"\0REQ\x08\0\0\0\x0d" + bytes(13), "INVALID_LENGTH"),
    "a completion without a code": (b"\0REQ\x0b\0\0\0\0", "INVALID_LENGTH"),
    "a creation of 4 bytes": (b"\0REQ\x04\0\0\0\x04x\0\0\0", "INVALID_LENGTH"),
    "a length over the limit": (b"\0REQ\x01\x04\0\0\x01", "TOO_LARGE"),
    "a length of 4 GiB": (b"\0REQ\x0b\xff\xff\xff\xff", "TOO_LARGE"),
}


@pytest.mark.parametrize(("stream", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(stream: bytes, code: str) -> None:
    reader = wire.Reader()
    reader.feed(stream)
    with pytest.raises(WireError) as caught:
        reader.next()
    assert (caught.value.code, caught.value.fatal) == (code, True)
    assert caught.value.text


def test_a_client_refuses_requests() -> None:
    reader = wire.Reader(magic=wire.RESPONSE)
    reader.feed(b"\0RES\x06\0\0\0\0")
    with pytest.raises(WireError, match="job_assign_req is for job servers"):
        reader.next()


def test_a_packet_of_exactly_the_limit_is_read() -> None:
    reader = wire.Reader(max_packet=8)
    reader.feed(wire.job_status_req(b"12345678"))
    assert reader.next() == wire.JOB_STATUS_REQ
    reader.feed(wire.job_status_req(b"123456789"))
    with pytest.raises(WireError, match="TOO_LARGE"):
        reader.next()


def test_a_packet_that_crawls_is_known_from_a_new_one() -> None:
    packet = wire.job_status_req(b"H:lap:1")
    reader = wire.Reader()
    reader.feed(packet + packet[:1])
    assert reader.next() == wire.JOB_STATUS_REQ
    for at in range(1, len(packet) - 1):
        assert reader.next() == wire.MORE
        assert (reader.split_packets, reader.incomplete_size) == (1, at)
        reader.feed(packet[at : at + 1])
    reader.feed(packet[-1:] + packet[:2])
    assert reader.next() == wire.JOB_STATUS_REQ
    assert reader.next() == wire.MORE
    assert (reader.split_packets, reader.incomplete_size) == (2, 2)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\0b", [b"a", b"b"]),
        (b"a\0b\0", [b"a", b"b"]),
        (b"\xc3\xa4 x", [b"\xc3\xa4 x"]),
    ],
)
def test_job_names(body: bytes, names: list[bytes]) -> None:
    assert wire.job_names(body) == names


@pytest.mark.parametrize("body", [b"\0", b"\0a", b"a\0\0b", b"a\0\0"])
def test_an_empty_job_name_is_refused(body: bytes) -> None:
    with pytest.raises(WireError, match="empty job name"):
        wire.job_names(body)


@pytest.mark.parametrize(
    ("body", "created"),
    [
        (b"mail\0\0\0\x01Dear Brad", (b"mail", b"", 0, 1, b"Dear Brad")),
        (b"resize\x001-2-80-60\0\0\x00a\0b\0", (b"resize", b"1-2-80-60", 0, 0, b"a\0b\0")),
        (b"x\0y\0\x07\x02", (b"x", b"y", 7, 2, b"")),
    ],
)
def test_creations(body: bytes, created: tuple[bytes, bytes, int, int, bytes]) -> None:
    assert wire.creation(body) == created


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"mail", "each end with NUL"),
        (b"mail\0key", "each end with NUL"),
        (b"mail\0key\0", "each end with NUL"),
        (b"mail\0key\0\0", "each end with NUL"),
        (b"\0key\0\0\x01args", "empty job name"),
        (b"mail\0key\0\0\x03args", "job type 3"),
        (b"mail\0key\0\0\xff", "job type 255"),
    ],
)
def test_creations_that_make_no_sense(body: bytes, complaint: str) -> None:
    with pytest.raises(WireError, match=complaint):
        wire.creation(body)


def test_assignments() -> None:
    assert wire.assignment(b"") is None
    assert wire.assignment(b"mail\0a\0b") == (b"mail", b"a\0b")
    with pytest.raises(WireError, match="ends with NUL"):
        wire.assignment(b"mail")


def test_a_nul_after_a_handle_is_overlooked() -> None:
    assert wire.handle(b"H:lap:1") == wire.handle(b"H:lap:1\0") == b"H:lap:1"


def test_numbers_that_other_protocols_have_are_cut_to_four_bytes() -> None:
    assert wire.status(wire.job_status_res(-1, 2**32, 2**40)[9:]) == (0, 2**32 - 1, 2**32 - 1)
    assert wire.completion(wire.job_complete_res(2**33, 5)[9:]) == (2**32 - 1, 5, b"")
