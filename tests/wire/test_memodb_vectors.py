"""MemoDB's messages against bytes of the original broker, and against everything that a header may be."""

import cbor2
import pytest

from geartrain.errors import WireError
from geartrain.wire import memodb as wire
from geartrain.wire.memodb import Message

READY = bytes.fromhex("84 66 6d656d6f3031 01 40 83 63616464 636d756c 68616c6976652e7476")
JOB_FROM_CLIENT = bytes.fromhex("85 66 6d656d6f3031 02 40 68616c6976652e7476 19 9c40")
JOB_TO_WORKER = bytes.fromhex("85 66 6d656d6f3031 02 44 c3a1b2d4 68616c6976652e7476 19 9c40")
RESULT_FROM_WORKER = bytes.fromhex("83 66 6d656d6f3031 03 44 c3a1b2d4")
LAST_RESULT = bytes.fromhex("84 66 6d656d6f3031 03 44 c3a1b2d4 f5")
RESULT_TO_CLIENT = bytes.fromhex("83 66 6d656d6f3031 03 40")
HEARTBEAT = bytes.fromhex("83 66 6d656d6f3031 04 44 c3a1b2d4")
DISCONNECT = bytes.fromhex("83 66 6d656d6f3031 05 44 c3a1b2d4")
ID = bytes.fromhex("c3a1b2d4")

REQUESTS = {
    "READY": (READY, b"", Message(wire.READY, b"", services=(b"add", b"mul", b"alive.tv"))),
    "JOB": (JOB_FROM_CLIENT, b"payload", Message(wire.JOB, b"", service=b"alive.tv", timeout=40000)),
    "JOB without a payload": (JOB_FROM_CLIENT, b"", Message(wire.JOB, b"", service=b"alive.tv", timeout=40000)),
    "RESULT": (RESULT_FROM_WORKER, b"payload", Message(wire.RESULT, ID)),
    "the last RESULT": (LAST_RESULT, b"\xf5", Message(wire.RESULT, ID, disconnecting=True)),
    "HEARTBEAT": (HEARTBEAT, b"", Message(wire.HEARTBEAT, ID)),
    # What the original's decoder took besides the deterministic encoding.
    "READY in another order": (
        cbor2.dumps(["memo01", 1, b"", ["mul", "add"]]), b"", Message(wire.READY, b"", services=(b"mul", b"add")),
    ),
    "READY with nothing": (cbor2.dumps(["memo01", 1, b"", []]), b"", Message(wire.READY, b"")),
    "longer numbers than need be": (
        bytes.fromhex("9a00000005 7806 6d656d6f3031 1802 5800 780161 1b0000000000000007"), b"\1",
        Message(wire.JOB, b"", service=b"a", timeout=7),
    ),
    "indefinite lengths": (
        bytes.fromhex("9f 7f 636d656d 636f3031 ff 01 5f ff 9f 7f 6161 6162 ff 6163 ff ff"), b"",
        Message(wire.READY, b"", services=(b"ab", b"c")),
    ),
    "a negative timeout": (
        cbor2.dumps(["memo01", 2, b"", "s", -(2**63)]), b"",
        Message(wire.JOB, b"", service=b"s", timeout=-(2**63)),
    ),
    "the largest timeout": (
        cbor2.dumps(["memo01", 2, b"", "s", 2**64 - 1]), b"",
        Message(wire.JOB, b"", service=b"s", timeout=2**64 - 1),
    ),
    "a service without a name": (
        cbor2.dumps(["memo01", 2, b"", "", 1]), b"x", Message(wire.JOB, b"", service=b"", timeout=1),
    ),
    "a long name": (
        cbor2.dumps(["memo01", 2, b"", "é" * 5000, 1]), b"x",
        Message(wire.JOB, b"", service=("é" * 5000).encode(), timeout=1),
    ),
    "a flag that is false": (cbor2.dumps(["memo01", 3, b"x", False]), b"", Message(wire.RESULT, b"x")),
}  # fmt: skip


@pytest.mark.parametrize(("header", "payload", "message"), REQUESTS.values(), ids=REQUESTS.keys())
def test_requests(header: bytes, payload: bytes, message: Message) -> None:
    assert wire.parse(header + payload) == (message, len(header))
    around = b"before" + header + payload + b"behind"
    assert wire.parse(around, 6, 6 + len(header + payload)) == (message, 6 + len(header))


@pytest.mark.parametrize(("header", "payload", "message"), REQUESTS.values(), ids=REQUESTS.keys())
def test_a_header_that_is_cut_off_anywhere(header: bytes, payload: bytes, message: Message) -> None:
    for size in range(len(header)):
        with pytest.raises(WireError) as caught:
            wire.parse(header + payload, 0, size)  # what lies behind the end is not looked at
        assert not caught.value.fatal


@pytest.mark.parametrize(
    "header",
    [
        cbor2.dumps(["memo01", 2, b"", "alive.tv", 60000], canonical=True),
        cbor2.dumps(["memo01", 3, bytes(wire.ID_SIZE)], canonical=True),
    ],
    ids=["JOB", "RESULT"],
)
def test_the_most_frequent_headers_are_found_without_parsing(header: bytes) -> None:
    """Those of clients, and of workers with an id of this server's."""
    data = b"before" + header + b"payload"
    assert wire._common_header_end(data, 6, len(data)) == 6 + len(header)


def test_what_a_broker_says() -> None:
    assert wire.job(ID, b"alive.tv", 40000) == JOB_TO_WORKER
    assert wire.RESULT_TO_CLIENT == RESULT_TO_CLIENT
    assert wire.heartbeat(ID) == HEARTBEAT
    assert wire.disconnect(ID) == DISCONNECT


REFUSED = {
    "nothing": b"",
    "a text": b"\x66memo01",
    "an empty array": b"\x80",
    "a break": b"\xff",
    "a break in an array of known length": b"\x83\x66memo01\xff",
    "a reserved length": b"\x9c",
    "a reserved length inside": b"\x83\x66memo01\x04\x5d",
    "a tag": b"\x83\xc0\x66memo01\x04\x41a",
    "a map": b"\x83\xa1\x01\x02\x04\x41a",
    "an endless map": b"\x83\xbf\xff\x04\x41a",
    "three deep": cbor2.dumps(["memo01", 1, b"", [["a"]]]),
    "a part of another type": b"\x84\x66memo01\x01\x40\x81\x7f\x41a\xff",
    "a part of unknown length": b"\x84\x66memo01\x01\x40\x81\x7f\x7f\xff\xff",
    "an endless number": b"\x83\x1f\x04\x41a",
    "too long": cbor2.dumps(["memo01", 1, b"", ["x" * wire.MAX_HEADER]]),
    "too many": cbor2.dumps(["memo01", 1, b"", [f"{n:04}" for n in range(wire.MAX_HEADER // 5)]]),
    "deep": b"\x81" * 10**6,
    "bad UTF-8": b"\x85\x66memo01\x02\x40\x62\xc3\x28\x01",
}


@pytest.mark.parametrize("message", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(message: bytes) -> None:
    with pytest.raises(WireError) as caught:
        wire.parse(message)
    assert not caught.value.fatal
    assert caught.value.text


def test_the_longest_header() -> None:
    names = [f"{n:06}" for n in range(9000)]
    message = cbor2.dumps(["memo01", 1, b"", names])
    assert len(message) < wire.MAX_HEADER
    assert wire.parse(message)[0].services == tuple(name.encode() for name in names)


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(40000, 40.0), (1, 0.001), (0, 0.001), (-5, 0.001), (-(2**63), 0.001), (600_000, 600.0)],
)
def test_timeouts(timeout: int, seconds: float) -> None:
    assert wire.seconds(timeout) == seconds


def test_a_timeout_beyond_all_time_can_still_be_said() -> None:
    milliseconds = round(wire.seconds(2**64 - 1) * 1000)
    header = wire.job(ID, b"s", milliseconds)
    assert cbor2.loads(header)[4] == milliseconds
    assert header[-9] == 0x1B  # a plain number, not a tag
