"""A raw-socket Gearman peer for tests: a client, a worker or an administrator, byte by byte.

with Peer(port) as peer:
    peer.send(Kind.ECHO_REQ, b"hello")
    peer.expect(Kind.ECHO_RES, b"hello")
"""

import enum
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

from tests.support import serving
from tests.support.peer import PATIENCE, RawPeer, connect

_REQUEST = b"\0REQ"
_RESPONSE = b"\0RES"
_HEADER = 12
_serial = itertools.count(1)


class Kind(enum.IntEnum):
    """The packet types, by number: 1 to 36 of the document, 37 to 42 as the C server added them."""

    CAN_DO = 1
    CANT_DO = 2
    RESET_ABILITIES = 3
    PRE_SLEEP = 4
    UNUSED = 5
    NOOP = 6
    SUBMIT_JOB = 7
    JOB_CREATED = 8
    GRAB_JOB = 9
    NO_JOB = 10
    JOB_ASSIGN = 11
    WORK_STATUS = 12
    WORK_COMPLETE = 13
    WORK_FAIL = 14
    GET_STATUS = 15
    ECHO_REQ = 16
    ECHO_RES = 17
    SUBMIT_JOB_BG = 18
    ERROR = 19
    STATUS_RES = 20
    SUBMIT_JOB_HIGH = 21
    SET_CLIENT_ID = 22
    CAN_DO_TIMEOUT = 23
    ALL_YOURS = 24
    WORK_EXCEPTION = 25
    OPTION_REQ = 26
    OPTION_RES = 27
    WORK_DATA = 28
    WORK_WARNING = 29
    GRAB_JOB_UNIQ = 30
    JOB_ASSIGN_UNIQ = 31
    SUBMIT_JOB_HIGH_BG = 32
    SUBMIT_JOB_LOW = 33
    SUBMIT_JOB_LOW_BG = 34
    SUBMIT_JOB_SCHED = 35
    SUBMIT_JOB_EPOCH = 36
    SUBMIT_REDUCE_JOB = 37
    SUBMIT_REDUCE_JOB_BG = 38
    GRAB_JOB_ALL = 39
    JOB_ASSIGN_ALL = 40
    GET_STATUS_UNIQUE = 41
    STATUS_RES_UNIQUE = 42


class Assignment(NamedTuple):
    """A job as a worker receives it; what a kind of assignment does not carry is empty."""

    kind: int
    handle: bytes
    function: bytes
    unique: bytes
    reducer: bytes
    data: bytes


# Which fields stand before the data in each kind of assignment.
_ASSIGNMENTS: dict[int, tuple[str, ...]] = {
    Kind.JOB_ASSIGN: ("handle", "function"),
    Kind.JOB_ASSIGN_UNIQ: ("handle", "function", "unique"),
    Kind.JOB_ASSIGN_ALL: ("handle", "function", "unique", "reducer"),
}


def request(kind: int, *args: bytes, magic: bytes = _REQUEST) -> bytes:
    """The bytes of one packet.

    >>> request(Kind.CAN_DO, b"reverse").hex()
    '00524551000000010000000772657665727365'
    """
    body = b"\0".join(args)
    return magic + kind.to_bytes(4, "big") + len(body).to_bytes(4, "big") + body


def assignment(kind: int, body: bytes) -> Assignment:
    """The job inside a JOB_ASSIGN, JOB_ASSIGN_UNIQ or JOB_ASSIGN_ALL."""
    names = _ASSIGNMENTS[kind]
    *fields, data = body.split(b"\0", len(names))
    given = dict(zip(names, fields, strict=True))
    return Assignment(
        kind, given["handle"], given["function"], given.get("unique", b""), given.get("reducer", b""), data
    )


def worker(port: int, *functions: bytes) -> "Peer":
    """A peer that offers the functions, once the server knows it."""
    return Peer(port).register(*functions)


def woken(taker: "Peer") -> Assignment:
    """The job for which a worker that sleeps is woken. Another one may have been quicker."""
    while True:
        taker.expect(Kind.NOOP)
        job = taker.take()
        if job is not None:
            return job
        taker.send(Kind.PRE_SLEEP)


def _shown(kind: int, body: bytes) -> str:
    name = Kind(kind).name if kind in Kind.__members__.values() else str(kind)
    return f"{name} {body[:200]!r}" + ("..." if len(body) > 200 else "")


class Peer(RawPeer):
    """One connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        super().__init__(connect(port))

    # Sending

    def send(self, kind: int, *args: bytes) -> Self:
        return self.raw(request(kind, *args))

    def text(self, line: str | bytes, ending: bytes = b"\n") -> Self:
        """Send an administrative command; read its answer with `line` or `block`."""
        return self.raw((line.encode() if isinstance(line, str) else line) + ending)

    # Receiving

    def packet(self, timeout: float = PATIENCE) -> tuple[int, bytes]:
        """The next packet: its kind and its body."""
        header = self.receive(_HEADER, timeout)
        assert header[:4] == _RESPONSE, f"not a response header: {header!r}"
        kind = int.from_bytes(header[4:8], "big")
        return kind, self.receive(int.from_bytes(header[8:], "big"), timeout)

    def expect(self, kind: int, *args: bytes, timeout: float = PATIENCE) -> None:
        """The next packet is this one, byte for byte."""
        got_kind, got_body = self.packet(timeout)
        body = b"\0".join(args)
        if (got_kind, got_body) != (kind, body):
            raise AssertionError(f"expected {_shown(kind, body)}, got {_shown(got_kind, got_body)}")

    def body(self, kind: int, timeout: float = PATIENCE) -> bytes:
        """The body of the next packet, which is of this kind."""
        got_kind, got_body = self.packet(timeout)
        if got_kind != kind:
            raise AssertionError(f"expected {_shown(kind, b'')}, got {_shown(got_kind, got_body)}")
        return got_body

    def error(self) -> tuple[str, str]:
        """The code and the text of the next packet, which is an ERROR."""
        code, text = self.body(Kind.ERROR).split(b"\0", 1)
        return code.decode(), text.decode()

    def block(self) -> list[bytes]:
        """The lines of a listing, without their ending and without the final dot."""
        lines: list[bytes] = []
        while (line := self.line()) != b".\n":
            assert not line.endswith(b"\r\n"), f"a listing's lines end with a bare LF: {line!r}"
            lines.append(line[:-1])
        return lines

    def silence(self) -> None:
        """Nothing has arrived: the answer to an echo is the next packet."""
        token = b"silence %d" % next(_serial)
        self.send(Kind.ECHO_REQ, token)
        self.expect(Kind.ECHO_RES, token)

    # Conversations

    def register(self, *functions: bytes) -> Self:
        for function in functions:
            self.send(Kind.CAN_DO, function)
        self.silence()
        return self

    def submit(self, function: bytes, unique: bytes = b"", data: bytes = b"", *, kind: int = Kind.SUBMIT_JOB) -> bytes:
        """Submit a job and return its handle."""
        self.send(kind, function, unique, data)
        return self.body(Kind.JOB_CREATED)

    def take(self, kind: int = Kind.GRAB_JOB) -> Assignment | None:
        """Grab once: a job, or None if there is none. A NOOP that was already on its way is passed over."""
        self.send(kind)
        answer, body = self.packet()
        while answer == Kind.NOOP:
            answer, body = self.packet()
        if answer == Kind.NO_JOB:
            return None
        assert answer in _ASSIGNMENTS, f"no answer to a grab: {_shown(answer, body)}"
        return assignment(answer, body)

    def grab(self, kind: int = Kind.GRAB_JOB) -> Assignment:
        """Grab until there is a job, sleeping in between as a worker does."""
        while (job := self.take(kind)) is None:
            self.sleep()
            self.expect(Kind.NOOP)
        return job

    def sleep(self) -> Self:
        return self.send(Kind.PRE_SLEEP)

    def status(self, handle: bytes) -> tuple[int, ...]:
        """Known, running, numerator, denominator."""
        self.send(Kind.GET_STATUS, handle)
        name, *numbers = self.body(Kind.STATUS_RES).split(b"\0")
        assert name == handle
        return tuple(int(number) for number in numbers)

    def listing(self, command: str) -> list[list[bytes]]:
        """The columns of an administrative listing."""
        self.text(command)
        return [line.split(b"\t") for line in self.block()]


# What the fixtures of the Gearman tests hand to a test.
Dial = Callable[[], Peer]
Hire = Callable[..., Peer]
Depart = Callable[[Peer], None]
Start = Callable[..., AbstractContextManager[serving.ServerProcess]]
