"""Bytes that no NNG or MemoDB peer sends: ignored, or the end of that pipe, and nobody else is hurt."""

import struct
from collections.abc import Callable

import cbor2
import pytest

from tests.acceptance.memodb.conftest import port_of
from tests.support import memodb_peer, serving
from tests.support.memodb_peer import Pipe

ID = struct.pack(">I", 0x80000001)
HOP = struct.pack(">I", 1)


def request(*items: object, payload: bytes = b"") -> bytes:
    return ID + cbor2.dumps(list(items)) + payload


IGNORED = {
    "no header": ID,
    "not CBOR": ID + b"\xff\xff\xff",
    "not an array": ID + cbor2.dumps("memo01"),
    "cut off": ID + b"\x85\x66memo01\x02\x40",
    "an array of 2^64 - 1 items": ID + b"\x9b" + b"\xff" * 8,
    "a text of 2^63 bytes": ID + b"\x81\x7b\x80" + bytes(7),
    "nested a hundred thousand deep": ID + b"\x81" * 100_000,
    "nested without end": ID + b"\x9f" * 100_000,
    "a regular expression": ID + b"\x84\x66memo01\x01\x40\x81\xd8\x23\x63a+b",
    "a bignum": ID + b"\x85\x66memo01\x02\x40\x61s\xc2\x49" + b"\xff" * 9,
    "a map": ID + b"\x83\x66memo01\x01\xa0",
    "a header of half a megabyte": ID + b"\x84\x66memo01\x01\x40\x81\x7a\x00\x08\x00\x00" + b"x" * 2**19,
    "bad UTF-8": ID + b"\x85\x66memo01\x02\x40\x62\xff\xff\x01",
    "another version": request("memo02", 2, b"", "s", 1000),
    "the version as bytes": request(b"memo01", 2, b"", "s", 1000),
    "too few items": request("memo01", 2),
    "type is a text": request("memo01", "2", b"", "s", 1000),
    "type is a bool": request("memo01", True, b"", []),
    "type 0": request("memo01", 0, b""),
    "type 6": request("memo01", 6, b""),
    "type 2^64 - 1": request("memo01", 2**64 - 1, b""),
    "DISCONNECT": request("memo01", 5, b"abcd"),
    "id is a text": request("memo01", 2, "", "s", 1000),
    "READY with an id": request("memo01", 1, b"abcd", ["s"]),
    "READY with a payload": request("memo01", 1, b"", ["s"], payload=b"x"),
    "READY without services": request("memo01", 1, b""),
    "READY with a text": request("memo01", 1, b"", "s"),
    "READY with numbers": request("memo01", 1, b"", [1]),
    "READY with an empty service": request("memo01", 1, b"", [""]),
    "READY with a service twice": request("memo01", 1, b"", ["s", "s"]),
    "READY with more": request("memo01", 1, b"", ["s"], 1),
    "JOB with an id": request("memo01", 2, b"abcd", "s", 1000),
    "JOB without a timeout": request("memo01", 2, b"", "s"),
    "JOB with a fraction": request("memo01", 2, b"", "s", 1000.5),
    "JOB with null": request("memo01", 2, b"", "s", None),
    "JOB with a bool": request("memo01", 2, b"", "s", True),
    "JOB below -2^63": request("memo01", 2, b"", "s", -(2**63) - 1),
    "JOB of a number": request("memo01", 2, b"", 7, 1000),
    "JOB with more": request("memo01", 2, b"", "s", 1000, 1),
    "RESULT without an id": request("memo01", 3, b""),
    "RESULT with a number": request("memo01", 3, b"abcd", 1),
    "RESULT with more": request("memo01", 3, b"abcd", True, True),
    "HEARTBEAT without an id": request("memo01", 4, b""),
    "HEARTBEAT with a payload": request("memo01", 4, b"abcd", payload=b"x"),
    "HEARTBEAT with more": request("memo01", 4, b"abcd", True),
    "nine hops": HOP * 8 + request("memo01", 4, b"abcd"),
    "hundreds of hops": HOP * 500,
}

GREETING = memodb_peer.greeting()
CLOSED = {
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "Gearman": b"\0REQ\0\0\0\x01\0\0\0\x01f",
    "only its beginning is wrong": b"X",
    "another version of SP": b"\0SP\x01\0\x30\0\0",
    "reserved bits": b"\0SP\0\0\x30\0\x01",
    "PUB": memodb_peer.greeting(0x20),
    "REP": memodb_peer.greeting(0x31),
    "a length of 2^63": GREETING + b"\x80" + bytes(7),
    "a length of 2^64 - 1": GREETING + b"\xff" * 8,
    "a byte more than is allowed": GREETING + struct.pack(">Q", 1024**2 + 1),
    "an empty message": GREETING + bytes(8),
    "a message of three bytes": GREETING + struct.pack(">Q", 3) + b"abc",
    "a backtrace without an end": GREETING + struct.pack(">Q", 8) + HOP * 2,
    "a backtrace that breaks off": GREETING + struct.pack(">Q", 6) + HOP + b"\x80\0",
}


@pytest.fixture(scope="module")
def flags() -> list[str]:
    return ["--max-packet", "1MiB", "--listen", "memodb+ipc:///proc/self/cwd/door.sock"]


def does_a_job(pipe: Pipe, service: str) -> None:
    """The pipe, and the server behind it, are fine."""
    request = pipe.job(service, b"payload")
    assigned = pipe.reply(pipe.ready(service))
    pipe.reply(pipe.request(memodb_peer.header(memodb_peer.RESULT, assigned.id, True) + b"result"))
    assert pipe.reply(request).payload == b"result"


@pytest.mark.parametrize("body", IGNORED.values(), ids=IGNORED.keys())
def test_what_is_ignored(dial: Callable[[], Pipe], service: str, body: bytes) -> None:
    neighbour, pipe = dial(), dial()
    waiting = neighbour.ready(service)
    pipe.message(body)
    pipe.silence()
    does_a_job(pipe, f"{service}-same-pipe")
    pipe.job(service)
    assert neighbour.reply(waiting).kind == memodb_peer.JOB


@pytest.mark.parametrize("stream", CLOSED.values(), ids=CLOSED.keys())
def test_what_ends_a_pipe(server: serving.ServerProcess, client: Pipe, service: str, stream: bytes) -> None:
    with Pipe.tcp(port_of(server, "memodb+tcp"), greet=False) as pipe:
        pipe.raw(stream)
        assert pipe.receive(8) == memodb_peer.greeting(memodb_peer.REP)
        pipe.closed()
    does_a_job(client, service)


@pytest.mark.parametrize("stream", [GREETING + bytes(9), GREETING + b"\x02" + bytes(8)])
def test_what_ends_a_pipe_over_a_socket_file(server: serving.ServerProcess, stream: bytes) -> None:
    with Pipe.ipc(str(server.home / "door.sock"), greet=False) as pipe:
        pipe.raw(stream)
        assert pipe.receive(8) == memodb_peer.greeting(memodb_peer.REP)
        pipe.closed()


def test_it_is_in_the_log(server: serving.ServerProcess, dial: Callable[[], Pipe]) -> None:
    pipe = dial()
    for _ in range(50):
        pipe.message(ID + b"nonsense")
    pipe.silence()
    host, port = pipe.socket.getsockname()
    pipe.message(b"")
    pipe.closed()
    assert server.says(f"peer refused  peer={host}:{port}")
    about = [line for line in server.stderr.splitlines() if f"peer={host}:{port}" in line]
    assert sum("message ignored" in line for line in about) == 1  # not fifty times


def test_a_peer_that_does_not_read_is_not_read_from(client: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    deaf = dial()
    deaf.socket.settimeout(1.0)
    asking = struct.pack(">Q", 18) + ID + memodb_peer.header(memodb_peer.HEARTBEAT, b"none")
    with pytest.raises(TimeoutError):  # sending stops when all buffers on the way are full
        deaf.socket.sendall(asking * 5_000_000)
    does_a_job(client, service)
