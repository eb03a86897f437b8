"""A raw-socket peer for the draft of 2005: an application or a worker, byte by byte.

with Peer(port) as application:
    handle = application.create(b"mail", args=b"Dear Brad")
"""

import enum
import itertools
import struct
import time
from typing import NamedTuple, Self

from tests.support.peer import PATIENCE, RawPeer, connect

SYNC, HANDLE, THROW_AWAY = 0, 1, 2
REQUEST = b"\0REQ"
RESPONSE = b"\0RES"
_HEADER = 9
_serial = itertools.count(1)


class Kind(enum.IntEnum):
    """The packet types of the document."""

    NOOP = 0x00
    WORKER_CONNECT = 0x01
    WORKER_DISCONNECT = 0x02
    WORKER_SLEEP = 0x03
    JOB_CREATE_REQ = 0x04
    JOB_CREATE_RES = 0x05
    JOB_ASSIGN_REQ = 0x06
    JOB_ASSIGN_RES = 0x07
    JOB_STATUS_ANNOUNCE = 0x08
    JOB_STATUS_REQ = 0x09
    JOB_STATUS_RES = 0x0A
    JOB_COMPLETE_ANNOUNCE = 0x0B
    JOB_COMPLETE_REQ = 0x0C
    JOB_COMPLETE_RES = 0x0D


class Job(NamedTuple):
    """What a worker is handed."""

    name: bytes
    args: bytes


class Completion(NamedTuple):
    """What job_complete_res says."""

    seconds: int
    code: int
    result: bytes

    @property
    def over(self) -> bool:
        return self.seconds > 0


INCOMPLETE = Completion(0, 0, b"")


def packet(kind: int, body: bytes = b"", magic: bytes = REQUEST) -> bytes:
    """The bytes of one packet.

    >>> packet(Kind.WORKER_CONNECT, b"add\\0mul").hex(" ")
    '00 52 45 51 01 00 00 00 07 61 64 64 00 6d 75 6c'
    """
    return magic + bytes([kind]) + len(body).to_bytes(4, "big") + body


def creation(name: bytes, key: bytes = b"", args: bytes = b"", type: int = HANDLE, flags: int = 0) -> bytes:
    return packet(Kind.JOB_CREATE_REQ, name + b"\0" + key + b"\0" + bytes([flags, type]) + args)


class Peer(RawPeer):
    """One connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        super().__init__(connect(port))

    def send(self, kind: int, body: bytes = b"") -> Self:
        return self.raw(packet(kind, body))

    # Receiving

    def packet(self) -> tuple[int, bytes]:
        """The next packet: its type and its body."""
        header = self.receive(_HEADER)
        assert header[:4] == RESPONSE, f"not a response header: {header!r}"
        return header[4], self.receive(int.from_bytes(header[5:], "big"))

    def body(self, kind: int) -> bytes:
        """The body of the next packet, which is of this type."""
        got, body = self.packet()
        assert got == kind, f"expected {Kind(kind).name}, got {got:#04x} {body[:200]!r}"
        return body

    def silence(self) -> None:
        """Nothing has arrived: the answer about a handle that cannot be is the next packet."""
        assert self.status(b"no such handle %d" % next(_serial)) == (0, 0, 0)

    # An application's conversations

    def create(self, name: bytes, key: bytes = b"", args: bytes = b"", type: int = HANDLE) -> bytes:
        """Create a job and return its handle."""
        self.raw(creation(name, key, args, type))
        return self.body(Kind.JOB_CREATE_RES)

    def status(self, handle: bytes) -> tuple[int, int, int]:
        self.send(Kind.JOB_STATUS_REQ, handle)
        return self.streamed_status()

    def streamed_status(self) -> tuple[int, int, int]:
        numerator, denominator, seconds = struct.unpack(">III", self.body(Kind.JOB_STATUS_RES))
        return numerator, denominator, seconds

    def completion(self, handle: bytes) -> Completion:
        """Ask once whether a job is finished."""
        self.send(Kind.JOB_COMPLETE_REQ, handle)
        return self.streamed_completion()

    def streamed_completion(self) -> Completion:
        body = self.body(Kind.JOB_COMPLETE_RES)
        return Completion(int.from_bytes(body[:4], "big"), body[4], body[5:])

    def result(self, handle: bytes) -> Completion:
        """Ask until it is finished: the draft has no other way to know."""
        deadline = time.monotonic() + PATIENCE
        while not (answer := self.completion(handle)).over:
            assert time.monotonic() < deadline, f"{handle!r} never finished"
        return answer

    # A worker's conversations

    def connect(self, *names: bytes) -> Self:
        """Offer these; it returns when the server knows."""
        self.send(Kind.WORKER_CONNECT, b"\0".join(names))
        self.silence()
        return self

    def take(self) -> Job | None:
        """Ask once for a job. A noop that was on its way is passed over."""
        self.send(Kind.JOB_ASSIGN_REQ)
        kind, body = self.packet()
        while kind == Kind.NOOP:
            kind, body = self.packet()
        assert kind == Kind.JOB_ASSIGN_RES, f"no answer to a worker's question: {kind:#04x} {body[:200]!r}"
        if not body:
            return None
        name, _, args = body.partition(b"\0")
        return Job(name, args)

    def grab(self) -> Job:
        """Ask until there is a job, sleeping in between as the document has it."""
        while (job := self.take()) is None:
            self.send(Kind.WORKER_SLEEP)
            assert self.body(Kind.NOOP) == b""
        return job

    def announce(self, numerator: int, denominator: int, seconds_left: int = 0) -> Self:
        return self.send(Kind.JOB_STATUS_ANNOUNCE, struct.pack(">III", numerator, denominator, seconds_left))

    def finish(self, result: bytes = b"", code: int = 0) -> Self:
        return self.send(Kind.JOB_COMPLETE_ANNOUNCE, bytes([code]) + result)
