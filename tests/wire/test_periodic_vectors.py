"""The Periodic codec against bytes of real peers, fed whole, byte by byte and at every split."""

from collections.abc import Iterable

import pytest

from geartrain.errors import WireError
from geartrain.wire import periodic as wire

# What aio-periodic 0.1.7 and node-periodic 1.2 say, who speak as the document has it.
DOCUMENT_WORKER = "00524551 00000001 02"
DOCUMENT_CLIENT = "00524551 00000001 01"
DOCUMENT = {
    "PING": ("00524551 00000005 61356362 09", b"a5cb", wire.PING, b""),
    "CAN_DO": ("00524551 0000000a 31373636 07 04 6563686f", b"1766", wire.CAN_DO, b"\x04echo"),
    "BROADCAST": ("00524551 00000008 37386439 15 02 6263", b"78d9", wire.BROADCAST, b"\x02bc"),
    "GRAB_JOB": ("00524551 00000005 61306137 01", b"a0a7", wire.GRAB_JOB, b""),
    "SUBMIT_JOB": (
        "00524551 0000001c 34343866 0d 04 6563686f 02 6e31 00000002 776c 000000005b7cb720 00",
        b"448f",
        wire.SUBMIT_JOB,
        wire.PeriodicJob(b"echo", b"n1", b"wl", 1534900000),
    ),
    "SUBMIT_JOB with a count": (
        "00524551 00000021 33303837 0d 04 6563686f 05 6c61746572 00000000 0000000000000000 01 00000007",
        b"3087",
        wire.SUBMIT_JOB,
        wire.PeriodicJob(b"echo", b"later", b"", 0, 7),
    ),
    "RUN_JOB": (
        "00524551 0000001f 34643537 19 04 6563686f 02 726a 00000005 68656c6c6f 0000000000000000 00",
        b"4d57",
        wire.RUN_JOB,
        wire.PeriodicJob(b"echo", b"rj", b"hello", 0),
    ),
    "SCHED_LATER": (
        "00524551 0000001f 7a6a6366 02 0f 726576657273650000 0000ec03b249 0000000000000005 0000",
        b"zjcf",
        wire.SCHED_LATER,
        b"\x0freverse\0\0\0\0\xec\x03\xb2\x49" + bytes(7) + b"\x05\0\0",
    ),
    "WORK_DONE": (
        "00524551 00000018 666f6236 03 0f 726576657273650000 000019c65f67 746e63",
        b"fob6",
        wire.WORK_DONE,
        b"\x0freverse\0\0\0\0\x19\xc6\x5f\x67tnc",
    ),
    "REMOVE_JOB": ("00524551 0000000d 37383638 11 04 6563686f 02 6e31", b"7868", wire.REMOVE_JOB, b"\x04echo\x02n1"),
    "DROP_FUNC": ("00524551 0000000b 35383930 0f 05 6f74686572", b"5890", wire.DROP_FUNC, b"\x05other"),
}

# What aio-periodic 1.0.0 says.
TODAY_WORKER = "00524551 00000001 3c0c8ea1 02"
TODAY_CLIENT = "00524551 00000001 a505df1b 01"
TODAY_NAMED = "00524551 00000020 cee7252c 03 0000000000000008 636c69656e742d61 0000000000000007 746f6b656e2d61"
TODAY = {
    "CAN_DO": ("00524551 0000000a 9b381a94 00000001 07 04 6563686f", b"\0\0\0\1", wire.CAN_DO, b"\x04echo"),
    "JOB_ASSIGNED": ("00524551 00000005 b87d85c1 00000002 21", b"\0\0\0\2", wire.JOB_ASSIGNED, b""),
    "WORK_DONE": (
        "00524551 00000011 ce0eb6ad 00000004 03 04 6563686f 02 6e31 523a776c",
        b"\0\0\0\4",
        wire.WORK_DONE,
        b"\x04echo\x02n1R:wl",
    ),
    "SUBMIT_JOB with both": (
        "00524551 00000022 06daa155 00000004 0d 04 6563686f 02 7633 00000000 0000000000000000 03 00000007 00000009",
        b"\0\0\0\4",
        wire.SUBMIT_JOB,
        wire.PeriodicJob(b"echo", b"v3", b"", 0, 7, 9),
    ),
}

Vector = tuple[str, bytes, int, bytes | wire.PeriodicJob]
REGISTRATIONS = {
    "document worker": (DOCUMENT_WORKER, wire.DOCUMENT, bytes([wire.WORKER])),
    "document client": (DOCUMENT_CLIENT, wire.DOCUMENT, bytes([wire.CLIENT])),
    "today's worker": (TODAY_WORKER, wire.TODAY, bytes([wire.WORKER])),
    "today's client": (TODAY_CLIENT, wire.TODAY, bytes([wire.CLIENT])),
    "today's client with a name": (
        TODAY_NAMED,
        wire.TODAY,
        bytes([wire.NAMED_CLIENT]) + wire.identity(b"client-a", b"token-a"),
    ),
}


def read(reader: wire.Reader, chunks: Iterable[bytes]) -> list[bytes]:
    """Every payload that a reader makes of these chunks."""
    found = []
    for chunk in chunks:
        reader.feed(chunk)
        while reader.next() == wire.FRAME:
            found.append(reader.data[reader.start : reader.end])
    return found


def every_way(stream: bytes) -> Iterable[list[bytes]]:
    """The stream whole, byte by byte, and in two pieces for every place to cut it."""
    yield [stream]
    yield [stream[at : at + 1] for at in range(len(stream))]
    for at in range(1, len(stream)):
        yield [stream[:at], stream[at:]]


def check(stream: bytes, dialect: wire.Dialect, expected: list[bytes]) -> None:
    for chunks in every_way(stream):
        reader = wire.Reader()
        assert read(reader, chunks) == expected, chunks
        assert reader.dialect is dialect
        assert reader.incomplete_size == 0


@pytest.mark.parametrize(("stream", "dialect", "payload"), REGISTRATIONS.values(), ids=REGISTRATIONS.keys())
def test_registrations(stream: str, dialect: wire.Dialect, payload: bytes) -> None:
    check(bytes.fromhex(stream), dialect, [payload])


def _payload(message_id: bytes, command: int, arguments: bytes | wire.PeriodicJob) -> bytes:
    said = wire.job(arguments) if isinstance(arguments, wire.PeriodicJob) else arguments
    return message_id + bytes([command]) + said


@pytest.mark.parametrize("vector", DOCUMENT.values(), ids=DOCUMENT.keys())
def test_requests_of_the_document(vector: Vector) -> None:
    stream, *said = vector
    payload = _payload(*said)
    check(bytes.fromhex(DOCUMENT_WORKER + stream), wire.DOCUMENT, [b"\x02", payload])
    assert wire.frame(wire.DOCUMENT, wire.REQUEST, payload) == bytes.fromhex(stream)


@pytest.mark.parametrize("vector", TODAY.values(), ids=TODAY.keys())
def test_requests_of_today(vector: Vector) -> None:
    stream, *said = vector
    payload = _payload(*said)
    check(bytes.fromhex(TODAY_WORKER + stream), wire.TODAY, [b"\x02", payload])
    assert wire.frame(wire.TODAY, wire.REQUEST, payload) == bytes.fromhex(stream)


def test_a_whole_conversation_in_each_dialect() -> None:
    for first, table, dialect in (
        (DOCUMENT_CLIENT, DOCUMENT, wire.DOCUMENT),
        (TODAY_CLIENT, TODAY, wire.TODAY),
    ):
        stream = bytes.fromhex(first + "".join(vector[0] for vector in table.values()))
        payloads = [_payload(*vector[1:]) for vector in table.values()]
        check(stream, dialect, [b"\x01", *payloads])


@pytest.mark.parametrize(
    "vector",
    [v for v in (*DOCUMENT.values(), *TODAY.values()) if isinstance(v[3], wire.PeriodicJob)],
    ids=lambda v: v[1],
)
def test_jobs_are_read(vector: Vector) -> None:
    data = bytes.fromhex(vector[0])
    arguments = wire.job(vector[3]) if isinstance(vector[3], wire.PeriodicJob) else b""
    start = len(data) - len(arguments)
    assert wire.Arguments(data, start, len(data)).job() == vector[3]


def test_answers() -> None:
    document, today = wire.DOCUMENT, wire.TODAY
    for dialect, payload, expected in (
        (document, bytes.fromhex("0e6a6fa0"), "00524553 00000004 0e6a6fa0"),
        (document, b"a5cb" + bytes([wire.PONG]), "00524553 00000005 61356362 0a"),
        (document, b"448f" + bytes([wire.SUCCESS]), "00524553 00000005 34343866 10"),
        (document, b"4d57" + document.data + b"R:hello", "00524553 0000000b 34643537 523a68656c6c6f"),
        (today, today.data + bytes.fromhex("98cef791"), "00524553 00000005 26c27857 1e 98cef791"),
        (today, b"\0\0\0\1" + bytes([wire.SUCCESS]), "00524553 00000005 c28ed638 00000001 10"),
    ):
        assert wire.frame(dialect, wire.RESPONSE, payload) == bytes.fromhex(expected)


def test_an_assignment_of_the_document_has_a_handle_before_the_job() -> None:
    handle = wire.short(b"echo\0\0\0\0\xec\x03\xb2\x49")
    payload = b"f801" + bytes([wire.JOB_ASSIGN]) + handle + wire.job(wire.PeriodicJob(b"echo", b"later", b"", 0, 7))
    assert wire.frame(wire.DOCUMENT, wire.RESPONSE, payload) == bytes.fromhex(
        "00524553 0000002e 66383031 05 0c 6563686f00000000ec03b249"
        "04 6563686f 05 6c61746572 00000000 0000000000000000 01 00000007"
    )


def test_a_job_from_before_versions() -> None:
    data = bytes.fromhex("04 6563686f 02 6e31 00000002 776c 000000005b7cb720 00000007")
    assert wire.Arguments(data, 0, len(data)).job() == wire.PeriodicJob(b"echo", b"n1", b"wl", 1534900000, 7)


def test_a_version_that_does_not_exist_is_none() -> None:
    data = bytes.fromhex("04 6563686f 02 6e31 00000002 776c 000000005b7cb720 09")
    assert wire.Arguments(data, 0, len(data)).job() == wire.PeriodicJob(b"echo", b"n1", b"wl", 1534900000)


def test_numbers_that_are_too_large_are_cut() -> None:
    for number, said in ((2**40, 2**31 - 1), (-(2**40), -(2**31))):
        data = wire.job(wire.PeriodicJob(b"f", b"n", b"", 2**100, number, number))
        found = wire.Arguments(data, 0, len(data)).job()
        assert found == wire.PeriodicJob(b"f", b"n", b"", 2**63 - 1, said, said)


@pytest.mark.parametrize(
    ("stream", "code"),
    [
        ("01", "MAGIC"),
        ("005245", None),
        ("00524553", "MAGIC"),
        ("00524558", "MAGIC"),
        ("00524551 7fffffff", "SIZE"),
        ("00524551 ffffffff", "SIZE"),
        ("00524551 00000001 a505df1a 01", "CRC"),
        ("00524551 00000001 a505df1b 02", "CRC"),
        ("00524551 00000002 00000000 0102", "CRC"),
        ("00524551 00000000 00000001 00", "CRC"),
        (TODAY_CLIENT + "00524551 00000005 00000000 6162636409", "CRC"),
        (TODAY_CLIENT + "00524552", "MAGIC"),
        (DOCUMENT_CLIENT + "00524551 04000001", "SIZE"),
        (DOCUMENT_CLIENT + "47", "MAGIC"),
    ],
)
def test_what_is_refused(stream: str, code: str | None) -> None:
    for chunks in every_way(bytes.fromhex(stream)):
        reader = wire.Reader()
        if code is None:
            assert read(reader, chunks) == []
            continue
        with pytest.raises(WireError) as caught:
            read(reader, chunks)
        assert caught.value.code == code


def test_the_limit_of_a_frame() -> None:
    for size, fits in ((100, True), (101, False)):
        reader = wire.Reader(max_packet=100)
        stream = bytes.fromhex(DOCUMENT_CLIENT) + wire.frame(wire.DOCUMENT, wire.REQUEST, b"x" * size)
        if fits:
            assert len(read(reader, [stream])) == 2
        else:
            with pytest.raises(WireError, match="a frame of 101 bytes was announced, 100 are allowed"):
                read(reader, [stream])


TAKES = {
    "kind": (wire.Arguments.kind, b"\1"),
    "short": (wire.Arguments.short, wire.short(b"name")),
    "job": (wire.Arguments.job, wire.job(wire.PeriodicJob(b"f", b"n", b"payload", 5, 1, 1))),
    "jobs": (
        wire.Arguments.jobs,
        wire.jobs([wire.PeriodicJob(b"f", b"n", b"p", 5), wire.PeriodicJob(b"f", b"n", b"p", 5, 0, 2)]),
    ),
    "later": (wire.Arguments.later, wire.later(5, -5)),
    "limit": (wire.Arguments.limit, wire.limit(-2)),
    "value": (wire.Arguments.value, wire.value(2**32 - 1)),
    "identity": (wire.Arguments.identity, wire.identity(b"name", b"token")),
}


@pytest.mark.parametrize(("take", "whole"), TAKES.values(), ids=TAKES.keys())
def test_arguments_that_are_cut_off(take, whole: bytes) -> None:  # type: ignore[no-untyped-def]
    around = b"\xff" * 5 + whole + b"\xff" * 50
    take(wire.Arguments(around, 5, 5 + len(whole)))
    for size in range(len(whole)):
        if take is wire.Arguments.job and size == len(whole) - 5:
            continue  # it has four bytes after its time, and is complete in the form from before versions
        with pytest.raises(WireError) as caught:
            take(wire.Arguments(around, 5, 5 + size))
        assert caught.value.code == "TRUNCATED"


def test_a_dump_that_promises_more_than_there_is_costs_nothing() -> None:
    data = (2**62).to_bytes(8, "big") + b"\0" * 100
    with pytest.raises(WireError):
        wire.Arguments(data, 0, len(data)).jobs()
