"""The Gearman codec against the bytes of the document, fed whole, byte by byte and at every split."""

from collections.abc import Iterator

import pytest

from geartrain.errors import LineError, WireError
from geartrain.wire import gearman as wire

# The requests of the document's "Binary Protocol Example", to the byte.
CAN_DO_REVERSE = bytes.fromhex("00524551 00000001 00000007 72657665727365")
GRAB_JOB = bytes.fromhex("00524551 00000009 00000000")
PRE_SLEEP = bytes.fromhex("00524551 00000004 00000000")
SUBMIT_JOB = bytes.fromhex("00524551 00000007 0000000d 7265766572736500 00 74657374")
WORK_COMPLETE = bytes.fromhex("00524551 0000000d 0000000c 483a6c61703a3100 74736574")

REQUESTS = {
    "worker registration": (CAN_DO_REVERSE, [(wire.CAN_DO, b"reverse")]),
    "worker check for job": (GRAB_JOB, [(wire.GRAB_JOB, b"")]),
    "worker goes to sleep": (PRE_SLEEP, [(wire.PRE_SLEEP, b"")]),
    "client job submission": (SUBMIT_JOB, [(wire.SUBMIT_JOB, b"reverse\0\0test")]),
    "worker response": (WORK_COMPLETE, [(wire.WORK_COMPLETE, b"H:lap:1\0tset")]),
    "the whole example on one connection": (
        CAN_DO_REVERSE + GRAB_JOB + PRE_SLEEP + SUBMIT_JOB + GRAB_JOB + WORK_COMPLETE,
        [
            (wire.CAN_DO, b"reverse"),
            (wire.GRAB_JOB, b""),
            (wire.PRE_SLEEP, b""),
            (wire.SUBMIT_JOB, b"reverse\0\0test"),
            (wire.GRAB_JOB, b""),
            (wire.WORK_COMPLETE, b"H:lap:1\0tset"),
        ],
    ),
    "text with LF": (b"status\n", [(wire.TEXT, b"status")]),
    "text with CRLF": (b"maxqueue f 10\r\n", [(wire.TEXT, b"maxqueue f 10")]),
    "an empty line": (b"\n\r\n", [(wire.TEXT, b""), (wire.TEXT, b"")]),
    "text and binary mixed": (
        b"version\r\n" + GRAB_JOB + b"workers\n" + CAN_DO_REVERSE,
        [(wire.TEXT, b"version"), (wire.GRAB_JOB, b""), (wire.TEXT, b"workers"), (wire.CAN_DO, b"reverse")],
    ),
    "a NUL in a line": (b"sta\0tus\n", [(wire.TEXT, b"sta\0tus")]),
}


def read(reader: wire.Reader, chunks: Iterator[bytes]) -> list[tuple[int, bytes]]:
    """Everything that a reader makes of these chunks."""
    found = []
    for chunk in chunks:
        reader.feed(chunk)
        while (kind := reader.next()) != wire.MORE:
            found.append((kind, reader.data[reader.start : reader.end]))
    return found


@pytest.mark.parametrize(("stream", "expected"), REQUESTS.values(), ids=REQUESTS.keys())
class TestRequests:
    def test_whole(self, stream: bytes, expected: list[tuple[int, bytes]]) -> None:
        assert read(wire.Reader(), iter([stream])) == expected

    def test_byte_by_byte(self, stream: bytes, expected: list[tuple[int, bytes]]) -> None:
        reader = wire.Reader()
        assert read(reader, (stream[i : i + 1] for i in range(len(stream)))) == expected
        assert reader.incomplete_size == 0

    def test_at_every_split(self, stream: bytes, expected: list[tuple[int, bytes]]) -> None:
        for at in range(1, len(stream)):
            assert read(wire.Reader(), iter([stream[:at], stream[at:]])) == expected, at


RESPONSES = [
    (wire.NO_JOB_PACKET, "00524553 0000000a 00000000"),
    (wire.NOOP_PACKET, "00524553 00000006 00000000"),
    (wire.response(wire.JOB_CREATED, b"H:lap:1"), "00524553 00000008 00000007 483a6c61703a31"),
    (wire.CREATED_HEADERS[7] + b"H:lap:1", "00524553 00000008 00000007 483a6c61703a31"),
    (
        wire.assignment(wire.JOB_ASSIGN, b"H:lap:1", b"reverse", b"test"),
        "00524553 0000000b 00000014 483a6c61703a3100 7265766572736500 74657374",
    ),
    (
        wire.about_job(wire.WORK_COMPLETE, b"H:lap:1", b"tset"),
        "00524553 0000000d 0000000c 483a6c61703a3100 74736574",
    ),
]


@pytest.mark.parametrize(("packet", "expected"), RESPONSES)
def test_responses_of_the_document(packet: bytes, expected: str) -> None:
    assert packet == bytes.fromhex(expected)


def test_requests_are_what_the_document_shows() -> None:
    assert wire.request(wire.CAN_DO, b"reverse") == CAN_DO_REVERSE
    assert wire.request(wire.GRAB_JOB) == GRAB_JOB
    assert wire.request(wire.SUBMIT_JOB, b"reverse", b"", b"test") == SUBMIT_JOB


REFUSED = {
    "wrong magic": (b"\0XYZ" + bytes(8), "INVALID_MAGIC"),
    "wrong magic, only its beginning": (b"\0X", "INVALID_MAGIC"),
    "type 0": (b"\0REQ" + bytes(8), "INVALID_COMMAND"),
    "type 43": (wire.request(43), "INVALID_COMMAND"),
    "type 2^32-1": (b"\0REQ\xff\xff\xff\xff" + bytes(4), "INVALID_COMMAND"),
    "a size over the limit": (b"\0REQ\0\0\0\x10\x04\0\0\x01", "ARGUMENT_TOO_LARGE"),
}


@pytest.mark.parametrize(("stream", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_for_good(stream: bytes, code: str) -> None:
    reader = wire.Reader()
    reader.feed(stream)
    with pytest.raises(WireError) as caught:
        reader.next()
    assert caught.value.code == code
    assert caught.value.fatal
    assert caught.value.text


def test_a_response_is_refused_and_the_next_packet_read() -> None:
    reader = wire.Reader()
    reader.feed(wire.response(wire.NOOP) + GRAB_JOB)
    with pytest.raises(WireError) as caught:
        reader.next()
    assert (caught.value.code, caught.value.text) == ("INVALID_MAGIC", "Request magic expected")
    assert not caught.value.fatal
    assert reader.next() == wire.GRAB_JOB


def test_a_packet_of_exactly_the_limit_is_read() -> None:
    reader = wire.Reader(max_packet=8)
    reader.feed(wire.request(wire.ECHO_REQ, b"12345678"))
    assert reader.next() == wire.ECHO_REQ
    reader.feed(wire.request(wire.ECHO_REQ, b"123456789"))
    with pytest.raises(WireError):
        reader.next()


def test_a_line_without_end() -> None:
    reader = wire.Reader()
    reader.feed(b"x" * (wire.MAX_LINE - 1))
    assert reader.next() == wire.MORE
    reader.feed(b"x")
    with pytest.raises(LineError):
        reader.next()


@pytest.mark.parametrize("packet", [wire.request(wire.ECHO_REQ, b"0123456789"), b"a line\n"])
def test_a_packet_that_crawls_is_known_from_a_new_one(packet: bytes) -> None:
    reader = wire.Reader()
    reader.feed(packet + packet[:1])
    assert reader.next() != wire.MORE
    for at in range(1, len(packet) - 1):
        assert reader.next() == wire.MORE
        assert (reader.split_packets, reader.incomplete_size) == (1, at)
        reader.feed(packet[at : at + 1])
    reader.feed(packet[-1:] + packet[:2])
    assert reader.next() != wire.MORE
    assert reader.next() == wire.MORE
    assert (reader.split_packets, reader.incomplete_size) == (2, 2)


def test_too_few_fields() -> None:
    body = b"function\0unique"
    with pytest.raises(WireError, match="3 fields"):
        wire.fields(wire.SUBMIT_JOB, body, 0, len(body))


def test_the_last_field_takes_the_rest() -> None:
    body = b"f\0u\0pay\0load\0"
    assert wire.fields(wire.SUBMIT_JOB, body, 0, len(body)) == [b"f", b"u", b"pay\0load\0"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"12", 12), (b"", 0), (b"abc", 0), (b"0.5", 0), (b"-1", -1), (b"+7", 7), (b"  42x", 42), (b"-", 0),
        (b"9" * 23, 10**20 - 1), (b"9" * 9999, 10**20 - 1), (b"0" * 9999 + b"7", 7), (b"-00", 0),
        ("٣".encode(), 0), (b"1_000", 1),
    ],
)  # fmt: skip
def test_numbers_as_c_reads_them(text: bytes, value: int) -> None:
    assert wire.number(text) == value
