"""The other side of three protocols: what clients and workers say, and what they make of a server's answers."""

import base64
import hashlib

import cbor2
import pytest

from geartrain.errors import WireError
from geartrain.wire import memodb, memodb_client, periodic, periodic_client, sp, sp_client, websocket, websocket_client
from geartrain.wire.memodb import Message

ID = bytes.fromhex("c3a1b2d4")

# Seen on the wire of aio-periodic 1.0.0, and of servers that answered it.
PERIODIC_REQUESTS = {
    "registration of a worker": (
        periodic_client.registration(periodic.WORKER), "00 52 45 51 00 00 00 01 3c 0c 8e a1 02",
    ),
    "registration of a client": (
        periodic_client.registration(periodic.CLIENT), "00 52 45 51 00 00 00 01 a5 05 df 1b 01",
    ),
    "registration with a name": (
        periodic_client.registration(periodic.NAMED_CLIENT, b"client-a", b"token-a"),
        "00 52 45 51 00 00 00 20 ce e7 25 2c 03 00 00 00 00 00 00 00 08" + b"client-a".hex()
        + "00 00 00 00 00 00 00 07" + b"token-a".hex(),
    ),
    "CAN_DO": (
        periodic_client.request(1, periodic.CAN_DO, periodic.short(b"echo")),
        "00 52 45 51 00 00 00 0a 9b 38 1a 94 00 00 00 01 07 04 65 63 68 6f",
    ),
    "JOB_ASSIGNED": (
        periodic_client.request(2, periodic.JOB_ASSIGNED), "00 52 45 51 00 00 00 05 b8 7d 85 c1 00 00 00 02 21",
    ),
    "WORK_DONE": (
        periodic_client.request(4, periodic.WORK_DONE, periodic_client.handle(b"echo", b"n1") + b"R:wl"),
        "00 52 45 51 00 00 00 11 ce 0e b6 ad 00 00 00 04 03 04 65 63 68 6f 02 6e 31 52 3a 77 6c",
    ),
}  # fmt: skip
ANSWERS = [
    bytes.fromhex("00 52 45 53 00 00 00 05 26 c2 78 57 1e 98 ce f7 91"),
    bytes.fromhex("00 52 45 53 00 00 00 05 c2 8e d6 38 00 00 00 01 10"),
]


@pytest.mark.parametrize(("said", "wanted"), PERIODIC_REQUESTS.values(), ids=PERIODIC_REQUESTS.keys())
def test_what_a_periodic_peer_says(said: bytes, wanted: str) -> None:
    assert said == bytes.fromhex(wanted)


def test_a_delay_counts_no_step() -> None:
    assert periodic_client.put_off(b"f", b"n", 5) == b"\x01f\x01n" + (5).to_bytes(8, "big") + b"\0\0"
    assert periodic_client.put_off(b"f", b"n", -5) == periodic_client.put_off(b"f", b"n", 0)


def _cut(pieces: list[bytes]) -> list[bytes]:
    answers = periodic_client.AnswerReader()
    found = []
    for piece in pieces:
        answers.feed(piece)
        while answers.next() == periodic.FRAME:
            found.append(answers.data[answers.start : answers.end])
    return found


def test_periodic_answers_whole_and_at_every_split() -> None:
    stream = b"".join(ANSWERS)
    payloads = [answer[12:] for answer in ANSWERS]
    assert _cut([stream]) == payloads
    assert _cut([bytes([byte]) for byte in stream]) == payloads
    for at in range(1, len(stream)):
        assert _cut([stream[:at], stream[at:]]) == payloads


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"HTTP/1.1", "MAGIC"),
        (b"\0REQ", "MAGIC"),
        (b"\0RES\xff\xff\xff\xff\0\0\0\0", "SIZE"),
        (ANSWERS[1][:-1] + b"\x11", "CRC"),
    ],
)
def test_what_no_periodic_server_says(data: bytes, code: str) -> None:
    with pytest.raises(WireError) as caught:
        _cut([data])
    assert caught.value.code == code


MEMODB_REQUESTS = {
    # The list is sorted by length first, as the original broker insists.
    "READY": (
        memodb_client.ready([b"mul", b"alive.tv", b"add", b"mul"]),
        "84 66 6d656d6f3031 01 40 83 63616464 636d756c 68616c6976652e7476",
    ),
    "JOB": (memodb_client.job(b"alive.tv", 40000), "85 66 6d656d6f3031 02 40 68616c6976652e7476 19 9c40"),
    "RESULT": (memodb_client.result(ID), "83 66 6d656d6f3031 03 44 c3a1b2d4"),
    "the last RESULT": (memodb_client.result(ID, True), "84 66 6d656d6f3031 03 44 c3a1b2d4 f5"),
    "HEARTBEAT": (memodb_client.heartbeat(ID), "83 66 6d656d6f3031 04 44 c3a1b2d4"),
}


@pytest.mark.parametrize(("said", "wanted"), MEMODB_REQUESTS.values(), ids=MEMODB_REQUESTS.keys())
def test_what_a_memodb_peer_says(said: bytes, wanted: str) -> None:
    assert said == bytes.fromhex(wanted)


MEMODB_ANSWERS = {
    "JOB": (memodb.job(ID, b"alive.tv", 40000), Message(memodb.JOB, ID, service=b"alive.tv", timeout=40000)),
    "RESULT": (memodb.RESULT_TO_CLIENT, Message(memodb.RESULT, b"")),
    "RESULT in another form": (cbor2.dumps(["memo01", 3, b"", False]), Message(memodb.RESULT, b"")),
    "HEARTBEAT": (memodb.heartbeat(ID), Message(memodb.HEARTBEAT, ID)),
    "DISCONNECT": (memodb.disconnect(ID), Message(memodb.DISCONNECT, ID)),
}


@pytest.mark.parametrize(("header", "message"), MEMODB_ANSWERS.values(), ids=MEMODB_ANSWERS.keys())
def test_what_a_broker_answers(header: bytes, message: Message) -> None:
    assert memodb_client.parse(header + b"payload") == (message, len(header))
    around = b"before" + header + b"payload" + b"behind"
    assert memodb_client.parse(around, 6, 6 + len(header) + 7) == (message, 6 + len(header))
    for size in range(len(header)):
        with pytest.raises(WireError):
            memodb_client.parse(header, 0, size)


@pytest.mark.parametrize(
    "items",
    [["memo01", 3], ["memo02", 3, b""], ["memo01", 1, b""], ["memo01", 2, b""], ["memo01", 2, b"id", "s", "1"], []],
)
def test_what_no_broker_answers(items: list[object]) -> None:
    with pytest.raises(WireError):
        memodb_client.parse(cbor2.dumps(items))


@pytest.mark.parametrize("prefix", [sp.TCP, sp.IPC])
def test_a_pipe_from_both_sides(prefix: bytes) -> None:
    asking, answering = sp_client.StreamPipe(prefix), sp.StreamPipe(prefix)
    id = sp_client.request_id(0x7FC1697)
    answering.feed(b"".join([asking.greeting, *asking.framed(id + b"head", b"payload")]))
    assert answering.next()
    assert answering.data[answering.start : answering.end] == id + b"headpayload"
    stream = b"".join([answering.greeting, *answering.framed(id, b"reply")])
    for byte in stream[:-1]:
        asking.feed(bytes([byte]))
        assert not asking.next()
    asking.feed(stream[-1:])
    assert asking.next()
    assert asking.data[asking.start : asking.end] == id + b"reply"


def test_request_ids_have_the_highest_bit() -> None:
    assert [sp_client.request_id(number)[0] & 0x80 for number in (0, 1, 2**31 - 1, 2**31, 2**40)] == [0x80] * 5
    assert sp_client.request_id(2**31 + 5) == sp_client.request_id(5)


@pytest.mark.parametrize("greeting", [sp.greeting(sp.REQ), b"\0SP\0\0\x31\0\x01", b"HTTP/1.1"])
def test_another_greeting_than_a_broker_has(greeting: bytes) -> None:
    pipe = sp_client.StreamPipe(sp.TCP)
    pipe.feed(greeting)
    with pytest.raises(WireError):
        pipe.next()


def _upgraded() -> tuple[websocket_client.ClientPipe, websocket.WebSocketPipe]:
    asking, answering = websocket_client.ClientPipe("::1", 80, "/memo"), websocket.WebSocketPipe("/memo")
    assert b"Host: [::1]:80\r\n" in asking.greeting
    answering.feed(asking.greeting)
    assert not answering.next()
    for byte in answering.answers.pop():
        asking.feed(bytes([byte]))
        assert not asking.next()
    assert asking.greeted
    return asking, answering


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 600_001])
def test_a_websocket_from_both_sides(size: int) -> None:
    asking, answering = _upgraded()
    payload = hashlib.shake_128(b"seed").digest(size)
    answering.feed(b"".join(asking.framed(b"head", payload)))
    assert answering.next()
    assert answering.data[answering.start : answering.end] == b"head" + payload
    asking.feed(b"".join(answering.framed(b"head", payload)))
    assert asking.next()
    assert asking.data[asking.start : asking.end] == b"head" + payload


def test_a_client_masks_its_control_frames_too() -> None:
    asking, answering = _upgraded()
    asking.feed(b"\x89\x03abc")  # a ping
    assert not asking.next()
    [pong] = asking.answers
    answering.feed(pong + b"".join(asking.framed(b"", b"x")))
    assert answering.next()
    asking.feed(bytes([0x82, 0x80]) + bytes(4))  # a server masks nothing
    with pytest.raises(WireError):
        asking.next()


@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.1 404 Not Found",
        "HTTP/1.1 101 Upgrade\r\nSec-WebSocket-Accept: {other}\r\nSec-WebSocket-Protocol: rep.sp.nanomsg.org",
        "HTTP/1.1 101 Upgrade\r\nSec-WebSocket-Accept: {token}",
    ],
)
def test_what_is_no_websocket(head: str) -> None:
    pipe = websocket_client.ClientPipe("127.0.0.1", 80, "")
    assert pipe.greeting.startswith(b"GET / HTTP/1.1\r\n")
    key = pipe.greeting.decode().partition("Sec-WebSocket-Key: ")[2].partition("\r\n")[0]
    assert len(base64.b64decode(key)) == 16
    pipe.feed((head.format(token=websocket.token(key), other=websocket.token("x")) + "\r\n\r\n").encode())
    with pytest.raises(WireError) as caught:
        pipe.next()
    assert caught.value.code == "HTTP"
