"""A raw-socket NNG peer for tests: MemoDB clients and workers on one pipe, byte by byte.

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
from typing import Any, NamedTuple, Self

import cbor2

from tests.support.peer import RawPeer, connect

READY, JOB, RESULT, HEARTBEAT, DISCONNECT = 1, 2, 3, 4, 5
REQ, REP = 0x30, 0x31
STRANGER = b"none"  # an id that no worker has


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


class Pipe(RawPeer):
    """One connection to a server on this machine."""

    def __init__(self, connected: socket.socket, prefix: bytes = b"", greet: bool = True) -> None:
        super().__init__(connected)
        self._prefix = prefix
        self._replies: dict[int, Reply] = {}  # that came while another one was waited for
        self._ids = itertools.count(0x80000001)
        if greet:
            self.raw(greeting())
            assert self.receive(8) == greeting(REP)

    @classmethod
    def tcp(cls, port: int, host: str = "127.0.0.1", greet: bool = True) -> Self:
        return cls(connect(port, host), greet=greet)

    @classmethod
    def ipc(cls, path: str, greet: bool = True) -> Self:
        return cls(connect(path), b"\x01", greet)

    # Sending

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

    # Conversations

    def assigned(self, request: int) -> Reply:
        """The JOB that answers a worker's request; heartbeats on the way are answered."""
        while (reply := self.reply(request)).kind == HEARTBEAT:
            request = self.heartbeat(reply.id)
        assert reply.kind == JOB, reply
        return reply
