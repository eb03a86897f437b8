"""A raw-socket NNG peer for tests: MemoDB clients and workers on one pipe, byte by byte.

It shares no code with the server's own codec, so that a fault in one cannot hide in the other. Nothing here
sleeps: `silence` proves that nothing arrived by an answer that would have come after it.

    with Pipe.tcp(port) as pipe:
        worker = pipe.ready("reverse")
        job = pipe.job("reverse", b"abc")
        assigned = pipe.reply(worker)
        pipe.result(assigned.id, b"cba")
        assert pipe.reply(job).payload == b"cba"
"""

import io
import itertools
import socket
import struct
import time
from typing import Any, NamedTuple, Self

import cbor2

PATIENCE = 10.0  # seconds until a missing answer is a failure; a passing test never waits this long

READY, JOB, RESULT, HEARTBEAT, DISCONNECT = 1, 2, 3, 4, 5
REQ, REP = 0x30, 0x31
STRANGER = b"none"  # an id of the right length that no worker has, except once in four thousand million runs


class Reply(NamedTuple):
    """A message of the broker."""

    request: int  # the id of the request that it answers
    kind: int
    id: bytes
    rest: list[Any]  # of the header
    payload: bytes


def greeting(protocol: int = REQ) -> bytes:
    return b"\0SP\0" + struct.pack(">HH", protocol, 0)


def header(kind: int, id: bytes, *rest: Any) -> bytes:
    return cbor2.dumps(["memo01", kind, id, *rest])


def parsed(body: bytes) -> Reply:
    """The reply in an SP message."""
    (request,) = struct.unpack_from(">I", body)
    stream = io.BytesIO(body[4:])
    version, kind, id, *rest = cbor2.CBORDecoder(stream).decode()
    assert version == "memo01"
    return Reply(request, kind, id, rest, body[4 + stream.tell() :])


class Pipe:
    """One connection to a server on this machine."""

    def __init__(self, connected: socket.socket, prefix: bytes = b"", greet: bool = True) -> None:
        self.socket = connected
        self.socket.settimeout(PATIENCE)
        self._prefix = prefix
        self._received = bytearray()
        self._replies: dict[int, Reply] = {}  # that came while another one was waited for
        self._ids = itertools.count(0x80000001)
        if greet:
            self.raw(greeting())
            assert self.receive(8) == greeting(REP)

    @classmethod
    def tcp(cls, port: int, host: str = "127.0.0.1", greet: bool = True) -> Self:
        connected = socket.create_connection((host, port), timeout=PATIENCE)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(connected, greet=greet)

    @classmethod
    def ipc(cls, path: str, greet: bool = True) -> Self:
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(path)
        return cls(connected, b"\x01", greet)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # Sending

    def raw(self, data: bytes) -> Self:
        self.socket.sendall(data)
        return self

    def message(self, body: bytes) -> Self:
        """An SP message, whatever is in it."""
        return self.raw(self._prefix + struct.pack(">Q", len(body)) + body)

    def request(self, body: bytes, number: int = 0) -> int:
        """A request with this id or a fresh one, which is returned."""
        number = number or next(self._ids)
        self.message(struct.pack(">I", number) + body)
        return number

    def ready(self, *services: str, number: int = 0) -> int:
        return self.request(header(READY, b"", list(services)), number)

    def job(self, service: str, payload: bytes = b"", timeout: int = 60_000, number: int = 0) -> int:
        return self.request(header(JOB, b"", service, timeout) + payload, number)

    def result(self, id: bytes, payload: bytes = b"", *flag: bool, number: int = 0) -> int:
        return self.request(header(RESULT, id, *flag) + payload, number)

    def heartbeat(self, id: bytes, number: int = 0) -> int:
        return self.request(header(HEARTBEAT, id), number)

    # Receiving

    def _fill(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        assert left > 0, f"no answer in time; received so far: {bytes(self._received[:200])!r}"
        self.socket.settimeout(left)
        try:
            more = self.socket.recv(1 << 20)
        except TimeoutError:
            raise AssertionError(f"no answer in time; received: {bytes(self._received[:200])!r}") from None
        except ConnectionResetError:
            return False
        self._received += more
        return bool(more)

    def receive(self, size: int) -> bytes:
        """Exactly so many bytes."""
        deadline = time.monotonic() + PATIENCE
        while len(self._received) < size:
            assert self._fill(deadline), f"closed by the server after {bytes(self._received[:200])!r}"
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def next(self) -> Reply:
        """The next reply, to whatever request."""
        assert self.receive(len(self._prefix)) == self._prefix
        (size,) = struct.unpack(">Q", self.receive(8))
        return parsed(self.receive(size))

    def reply(self, request: int) -> Reply:
        """The reply to this request; others are kept until they are asked for."""
        while request not in self._replies:
            reply = self.next()
            assert reply.request not in self._replies, f"a second answer: {reply}"
            self._replies[reply.request] = reply
        return self._replies.pop(request)

    def silence(self) -> None:
        """Nothing has arrived: the answer to a stranger's heartbeat is the next one."""
        assert not self._replies
        number = self.heartbeat(STRANGER)
        assert self.next() == Reply(number, DISCONNECT, STRANGER, [], b"")

    def closed(self) -> None:
        """The server closes the pipe and says nothing more."""
        deadline = time.monotonic() + PATIENCE
        while self._fill(deadline):
            pass
        assert bytes(self._received) == b""

    # Conversations

    def assigned(self, request: int) -> Reply:
        """The JOB that answers a worker's request; heartbeats on the way are answered."""
        while (reply := self.reply(request)).kind == HEARTBEAT:
            request = self.heartbeat(reply.id)
        assert reply.kind == JOB, reply
        return reply
